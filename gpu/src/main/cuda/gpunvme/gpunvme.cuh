#pragma once
// NVMe from inside a kernel. See docs/device-library.md.
#include "block.cuh"
#include "directory.cuh"
#include "exclusive.cuh"
#include "file.cuh"
#include "io.cuh"
#include "server.cuh"
#include "set.cuh"
