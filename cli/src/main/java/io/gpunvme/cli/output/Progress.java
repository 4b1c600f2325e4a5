package io.gpunvme.cli.output;

/** Shows the progress of a command. {@link #moved} is safe for all threads. */
public interface Progress extends AutoCloseable {
  /** Shows nothing. */
  Progress NONE =
      new Progress() {
        @Override
        public void begin(String task, long bytes) {}

        @Override
        public void moved(long bytes) {}

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
  void begin(String task, long bytes);

  /** Another {@code bytes} bytes are done. */
  void moved(long bytes);

  /** Takes the bar away. */
  @Override
  void close();
}
