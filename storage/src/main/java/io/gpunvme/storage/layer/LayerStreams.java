package io.gpunvme.storage.layer;

/**
 * What a ring wants of streams of work.
 *
 * @param <S> a stream
 */
interface LayerStreams<S> extends AutoCloseable {
  /** What streams wait for before they use a slot. */
  Gate<S> gate(int slot);

  /** A use of a slot to come. */
  Use<S> use();

  /**
   * Whether a stream can wait for layers without holding up their reads. May take a while. If not,
   * the CPU waits for it.
   */
  boolean mayWait(S stream);

  /** No stream waits or uses any more. */
  @Override
  void close();

  /**
   * Counts the turns of one slot.
   *
   * @param <S> a stream
   */
  interface Gate<S> {
    /** Lets what is put into the stream from now on wait until the turn is open. */
    void await(S stream, int turn);

    /** Opens a turn and those before it. */
    void open(int turn);
  }

  /**
   * A stream's use of a slot, from its wait to the end of its work.
   *
   * @param <S> a stream
   */
  interface Use<S> {
    /** Lets what is put into the stream from now on wait until the turn is open. */
    void begin(S stream, Gate<S> gate, int turn);

    /** Has the use end when what is in the stream now is over. */
    void end(S stream);

    /** Whether it is over; never waits. After {@link #end}. */
    boolean isOver();

    /** Waits for that. */
    void awaitOver();

    /** How long the stream waited at {@link #begin}, ns; it is over. */
    long waitedNanos();

    /** It is over, and can stand for another use. */
    void recycle();
  }
}
