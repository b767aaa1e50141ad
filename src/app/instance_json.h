// What GET /v1/status tells of an instance.
#pragma once

#include <nlohmann/json.hpp>

#include "control/instance_options.h"
#include "topology/split_choice.h"

namespace tandem::app {

nlohmann::ordered_json instance_json(const control::InstanceSnapshot& instance,
                                     const topology::SplitChoice& split);

}  // namespace tandem::app
