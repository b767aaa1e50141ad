// The only place of tandem-rank that knows every concrete type.
#pragma once

#include <memory>

#include "app/rank/options.h"
#include "app/rank/rank.h"
#include "app/rank/rank_model.h"
#include "base/result.h"

namespace tandem::app {

/// The model asked for, not loaded yet. Where that cannot be, a model whose load() says why: so the
/// head learns the reason as it does of any load that fails.
std::unique_ptr<RankModel> make_model(const RankOptions& options);

/// Reads a descriptor to its end and closes it. Errors: kIo, kInvalid (under 16 bytes).
Result<std::vector<std::byte>> read_secret(int fd);
/// The same, from the file if one is named.
Result<std::vector<std::byte>> read_secret(const RankOptions& options);

RankConfig make_config(const RankOptions& options, std::vector<std::byte> secret);

}  // namespace tandem::app
