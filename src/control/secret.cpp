#include "control/secret.h"

#include <openssl/rand.h>

#include "base/check.h"

namespace tandem::control {

plan::Bytes random_secret() {
  plan::Bytes secret(32);
  const int got = ::RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()),
                               static_cast<int>(secret.size()));
  TANDEM_CHECK(got == 1, "the system gives no random bytes");
  return secret;
}

}  // namespace tandem::control
