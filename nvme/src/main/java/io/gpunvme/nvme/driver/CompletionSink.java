package io.gpunvme.nvme.driver;

/** Receives completions from {@link QueuePair#poll}, on the thread that polls. */
@FunctionalInterface
public interface CompletionSink {
  /**
   * One command is over.
   *
   * <p>The slot's details ({@link QueuePair#userData}, {@link QueuePair#dw0}, …) may be read until
   * this method returns; then the slot is free again. New commands may be submitted from here, but
   * neither {@code poll} nor {@code rebuild} may be called.
   *
   * @param status the 15-bit Status Field, 0 for success
   */
  void completed(QueuePair queue, int slot, int status);
}
