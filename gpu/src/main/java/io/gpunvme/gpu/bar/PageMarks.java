package io.gpunvme.gpu.bar;

/**
 * Marks on the pages of a piece of memory, written and read by its owner, as {@link PageCut} and
 * {@link MarkKey} say. Made when a search begins; {@link #close} ends it and brings back what was
 * there before. Used by one thread.
 *
 * <p>Every method returns when it is done, and may throw the owner's own unchecked exception.
 */
public interface PageMarks extends AutoCloseable {
  /** Writes every mark, over those of an earlier key. */
  void write(MarkKey key);

  /**
   * Compares every mark.
   *
   * @return the number of one that is not as the key says; -1 if there is none
   */
  long firstWrong(MarkKey key);

  /** Writes what was there before the first mark. Idempotent. */
  @Override
  void close();
}
