package io.gpunvme.cuda;

/** Memory of a GPU in bytes: free, and in all. */
public record MemoryInfo(long free, long total) {}
