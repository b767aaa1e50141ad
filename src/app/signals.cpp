#include "app/signals.h"

#include <pthread.h>

namespace tandem::app {

SignalSet::SignalSet(std::initializer_list<int> signals) {
  sigemptyset(&set_);
  for (const int signal : signals) sigaddset(&set_, signal);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
}

void SignalSet::wait() const {
  int signal = 0;
  sigwait(&set_, &signal);
}

bool SignalSet::pending() const {
  sigset_t waiting;
  sigpending(&waiting);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&set_, signal) == 1 && sigismember(&waiting, signal) == 1) {
      wait();
      return true;
    }
  }
  return false;
}

}  // namespace tandem::app
