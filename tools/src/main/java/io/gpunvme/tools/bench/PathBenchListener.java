package io.gpunvme.tools.bench;

/** Who watches a {@link PathBench}; called by the thread that measures. */
public interface PathBenchListener {
  /**
   * Something that takes a while begins.
   *
   * @param what a result's name, or what is made
   * @param bytes that it will move, as far as that is known
   */
  default void begins(String what, long bytes) {}

  /** So many more of those bytes. */
  default void moved(long bytes) {}

  /** A result is there; what it is compared with may not be. */
  default void measured(Measurement result) {}

  /** One that is not possible here, with the reason. */
  default void skipped(String id, String why) {}
}
