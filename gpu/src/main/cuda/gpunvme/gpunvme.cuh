#pragma once
// NVMe from inside a kernel. See docs/device-library.md.
#include "array.cuh"
#include "block.cuh"
#include "cache.cuh"
#include "directory.cuh"
#include "exclusive.cuh"
#include "file.cuh"
#include "io.cuh"
#include "server.cuh"
#include "set.cuh"
