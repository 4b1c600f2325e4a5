#pragma once
// NVMe from inside a kernel. See docs/device-library.md.
#include "exclusive.cuh"
#include "io.cuh"
