// Which device MLX builds and runs arrays on.
#pragma once

#include <mlx/mlx.h>

namespace tandem::tensor {

/// The GPU, where this build of MLX can use one; else the CPU.
mlx::core::Device best_device();

/// Makes `device` the default of what is built after. It is one for the whole process: parts of a
/// model that run at the same time share it.
void use_device(const mlx::core::Device& device);

}  // namespace tandem::tensor
