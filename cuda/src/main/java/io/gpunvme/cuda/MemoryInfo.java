package io.gpunvme.cuda;

/** Memory of a GPU in bytes: what nobody has allocated, and all there is. */
public record MemoryInfo(long free, long total) {}
