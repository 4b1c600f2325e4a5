package io.gpunvme.cuda;

/**
 * A compiled program.
 *
 * @param ptx for {@link CudaContext#loadModule}
 * @param log of the compiler: warnings, possibly empty
 */
public record NvrtcProgram(byte[] ptx, String log) {}
