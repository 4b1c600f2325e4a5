package io.gpunvme.nvme.fuzz;

import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** What a device says must not reach a terminal with control characters in it. */
final class Printable {
  private Printable() {}

  static void require(String text) {
    if (text.chars().anyMatch(Character::isISOControl)) {
      throw new AssertionError(
          "control characters: " + text.replaceAll("\\p{Cntrl}", "<!>").replace('\u009b', '!'));
    }
  }

  static void require(Throwable thrown) {
    for (Throwable t = thrown; t != null; t = t.getCause()) {
      require(String.valueOf(t.getMessage()));
    }
  }

  /** Looks at every line of a logger instead of printing it, until closed. */
  static final class Log extends Handler implements AutoCloseable {
    private final Logger logger;
    private final SimpleFormatter formatter = new SimpleFormatter();
    private volatile AssertionError failure;

    Log(String name) {
      logger = Logger.getLogger(name);
      logger.setUseParentHandlers(false);
      logger.setLevel(Level.FINE);
      logger.addHandler(this);
    }

    @Override
    public void publish(LogRecord line) {
      try {
        require(formatter.formatMessage(line));
        if (line.getThrown() != null) {
          require(line.getThrown());
        }
      } catch (AssertionError e) {
        failure = e;
      }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
      logger.removeHandler(this);
      logger.setUseParentHandlers(true);
      logger.setLevel(null);
      if (failure != null) {
        throw failure;
      }
    }
  }
}
