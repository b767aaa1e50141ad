// Which of some names one was meant by another.
#pragma once

#include <span>
#include <string_view>

namespace tandem {

/// The nearest of `known`, of which there is at least one: by letters to insert, drop or change; a
/// name that goes on from another, or stops earlier, is nearest.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);

}  // namespace tandem
