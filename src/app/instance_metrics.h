// What instances, their ranks and engines count, in the Prometheus text format.
#pragma once

#include <vector>

#include "control/instance_options.h"
#include "protocol/metrics.h"

namespace tandem::app {

/// Appends families; all of an instance's samples carry its name.
void write_metrics(protocol::MetricsText& out,
                   const std::vector<control::InstanceSnapshot>& instances);

}  // namespace tandem::app
