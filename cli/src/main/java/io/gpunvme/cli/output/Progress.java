package io.gpunvme.cli.output;

/** Shows the progress of a command. {@link #moved} is safe for all threads. */
public interface Progress extends AutoCloseable {
  /** What is counted. */
  enum Unit {
    BYTES("MiB", 1 << 20),
    NANOS("s", 1_000_000_000);

    private final String shown;
    private final long size;

    Unit(String shown, long size) {
      this.shown = shown;
      this.size = size;
    }

    /** The unit that a terminal shows. */
    String shown() {
      return shown;
    }

    /** How many there are in one that is shown. */
    long size() {
      return size;
    }
  }

  /** Shows nothing. */
  Progress NONE =
      new Progress() {
        @Override
        public void begin(String task, long amount, Unit unit) {}

        @Override
        public void moved(long amount) {}

        @Override
        public void close() {}
      };

  /** A bar on the error stream if that is a terminal, otherwise nothing. */
  static Progress on(OutputStreams streams) {
    int columns = streams.columns().getAsInt();
    return columns == 0 ? NONE : new BarProgress(streams.err(), columns);
  }

  /** The same for what takes minutes: where there is no terminal, a line every 30 s. */
  static Progress always(OutputStreams streams) {
    int columns = streams.columns().getAsInt();
    return columns == 0
        ? new LineProgress(streams.err(), System::nanoTime)
        : new BarProgress(streams.err(), columns);
  }

  /** Begins a task of this many bytes; the task before is over. */
  default void begin(String task, long bytes) {
    begin(task, bytes, Unit.BYTES);
  }

  /** Begins a task of this length; the task before is over. */
  void begin(String task, long amount, Unit unit);

  /** So much more is done, in the task's unit. */
  void moved(long amount);

  /** Takes the bar away. */
  @Override
  void close();
}
