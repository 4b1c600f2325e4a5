package io.gpunvme.cuda.cufile;

import io.gpunvme.cuda.DeviceMemory;

/**
 * One entry of a batch.
 *
 * @param writing whether memory is written to the file; else the file is read into memory
 * @param file where from or to
 * @param memory GPU memory
 * @param range bytes
 * @param cookie comes back in the {@link CuFileCompletion}
 */
public record CuFileRequest(
    boolean writing, CuFileHandle file, DeviceMemory memory, CuFileRange range, long cookie) {
  /** Checks that the range lies in the memory. */
  public CuFileRequest {
    range.checkInside(memory.size());
  }
}
