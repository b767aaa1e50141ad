// Secrets of links, made for one run and held in memory only.
#pragma once

#include "plan/wire.h"

namespace tandem::control {

/// 32 bytes from the system's generator. Aborts when it has none.
plan::Bytes random_secret();

}  // namespace tandem::control
