package io.gpunvme.base;

import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Who has something: one thread, or nobody. The word that says so has its cache lines to itself, so
 * those who claim other things do not slow down this one. What the last holder wrote before {@link
 * #release} is there for the next. Safe for all threads.
 */
public final class Claim {
  /** Elements before and after the word: 128 bytes, for processors fetch pairs of lines. */
  private static final int PADDING = 32;

  private final AtomicReferenceArray<@Nullable Thread> holder =
      new AtomicReferenceArray<>(PADDING + 1 + PADDING);

  /** Of something that nobody has. */
  public Claim() {}

  /** Takes it for this thread; false if somebody has it, be it this thread. */
  public boolean take() {
    // Asking first leaves the line with its holder.
    return holder() == null && holder.compareAndSet(PADDING, null, Thread.currentThread());
  }

  /** Gives it back; any thread. Ordered before this thread's later reads of volatile fields. */
  public void release() {
    holder.set(PADDING, null);
  }

  /** Who took it, or null. */
  public @Nullable Thread holder() {
    return holder.get(PADDING);
  }
}
