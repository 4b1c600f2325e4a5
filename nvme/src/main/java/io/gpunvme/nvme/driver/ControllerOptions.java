package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.BusRange;
import java.time.Duration;

/**
 * The options of a controller. Immutable; {@link #builder} starts from the defaults.
 *
 * @param allowWrite whether commands that change data on the medium may be sent; off by default
 * @param ioTimeout an I/O command older than this is recovered
 * @param adminTimeout an admin command older than this is recovered
 * @param recoveryTimeout the same for the commands recovery itself sends (Abort, Delete Queue)
 * @param formatTimeout how long Format NVM may take
 * @param shutdownTimeout shortest wait for an orderly shutdown; RTD3E may make it longer, up to a
 *     minute
 * @param adminEntries entries of each admin queue, 8..4096
 * @param queuePairs I/O queue pairs to ask the controller for, 1..65534; it may grant fewer
 * @param maxTransferBytes longest data transfer of one command, a multiple of 4096 up to 1 GiB;
 *     MDTS may make it shorter. The default is 1 MiB: a {@link QueuePair} keeps memory for the PRP
 *     list of a command this long for each command in flight, 2 KiB then, and lists that a kernel
 *     uses do not go on in a second list page, which a few controllers cannot follow
 * @param dataPointers how I/O commands name their data
 * @param retries how often a retryable command is repeated, 0..100
 * @param hostMemoryBufferBytes most host memory to lend to a controller that asks for some; 0: none
 * @param asyncEvents whether Asynchronous Event Requests are kept outstanding
 * @param keepAlive Keep Alive Timeout; zero: off
 */
public record ControllerOptions(
    boolean allowWrite,
    Duration ioTimeout,
    Duration adminTimeout,
    Duration recoveryTimeout,
    Duration formatTimeout,
    Duration shutdownTimeout,
    int adminEntries,
    int queuePairs,
    long maxTransferBytes,
    DataPointerMode dataPointers,
    int retries,
    long hostMemoryBufferBytes,
    boolean asyncEvents,
    Duration keepAlive) {
  /** Checks every value against its range. */
  public ControllerOptions {
    positive("ioTimeout", ioTimeout);
    positive("adminTimeout", adminTimeout);
    positive("recoveryTimeout", recoveryTimeout);
    positive("formatTimeout", formatTimeout);
    positive("shutdownTimeout", shutdownTimeout);
    range("adminEntries", adminEntries, 8, 4096);
    range("queuePairs", queuePairs, 1, 65534);
    range("maxTransferBytes", maxTransferBytes, BusRange.GRANULE, 1L << 30);
    if (maxTransferBytes % BusRange.GRANULE != 0) {
      throw new InvalidRequestException(
          "maxTransferBytes " + maxTransferBytes + " is not a multiple of " + BusRange.GRANULE);
    }
    range("retries", retries, 0, 100);
    range("hostMemoryBufferBytes", hostMemoryBufferBytes, 0, 1L << 40);
    if (keepAlive.isNegative()) {
      throw new InvalidRequestException("keepAlive " + keepAlive + " is negative");
    }
  }

  /** Read-only, and otherwise what suits most drives. */
  public static ControllerOptions defaults() {
    return builder().build();
  }

  /** The same, with or without permission to change data. */
  public ControllerOptions withWrite(boolean allowed) {
    return new ControllerOptions(
        allowed,
        ioTimeout,
        adminTimeout,
        recoveryTimeout,
        formatTimeout,
        shutdownTimeout,
        adminEntries,
        queuePairs,
        maxTransferBytes,
        dataPointers,
        retries,
        hostMemoryBufferBytes,
        asyncEvents,
        keepAlive);
  }

  /** A builder with the defaults. */
  public static Builder builder() {
    return new Builder();
  }

  private static void positive(String name, Duration value) {
    if (value.isNegative() || value.isZero() || value.compareTo(Duration.ofDays(1)) > 0) {
      throw new InvalidRequestException(name + " " + value + " is outside 1 ns..1 day");
    }
  }

  private static void range(String name, long value, long low, long high) {
    if (value < low || value > high) {
      throw new InvalidRequestException(name + " " + value + " is outside " + low + ".." + high);
    }
  }

  /**
   * Collects options; each setter is named after the component it sets. Not for several threads.
   */
  public static final class Builder {
    private boolean allowWrite;
    private Duration ioTimeout = Duration.ofSeconds(30);
    private Duration adminTimeout = Duration.ofSeconds(60);
    private Duration recoveryTimeout = Duration.ofSeconds(5);
    private Duration formatTimeout = Duration.ofMinutes(10);
    private Duration shutdownTimeout = Duration.ofSeconds(5);
    private int adminEntries = 32;
    private int queuePairs = 128;
    private long maxTransferBytes = 1L << 20;
    private DataPointerMode dataPointers = DataPointerMode.PRP;
    private int retries = 3;
    private long hostMemoryBufferBytes = 128L << 20;
    private boolean asyncEvents = true;
    private Duration keepAlive = Duration.ZERO;

    private Builder() {}

    /** See {@link ControllerOptions#allowWrite}. */
    public Builder allowWrite(boolean value) {
      allowWrite = value;
      return this;
    }

    /** See {@link ControllerOptions#ioTimeout}. */
    public Builder ioTimeout(Duration value) {
      ioTimeout = value;
      return this;
    }

    /** See {@link ControllerOptions#adminTimeout}. */
    public Builder adminTimeout(Duration value) {
      adminTimeout = value;
      return this;
    }

    /** See {@link ControllerOptions#recoveryTimeout}. */
    public Builder recoveryTimeout(Duration value) {
      recoveryTimeout = value;
      return this;
    }

    /** See {@link ControllerOptions#formatTimeout}. */
    public Builder formatTimeout(Duration value) {
      formatTimeout = value;
      return this;
    }

    /** See {@link ControllerOptions#shutdownTimeout}. */
    public Builder shutdownTimeout(Duration value) {
      shutdownTimeout = value;
      return this;
    }

    /** See {@link ControllerOptions#adminEntries}. */
    public Builder adminEntries(int value) {
      adminEntries = value;
      return this;
    }

    /** See {@link ControllerOptions#queuePairs}. */
    public Builder queuePairs(int value) {
      queuePairs = value;
      return this;
    }

    /** See {@link ControllerOptions#maxTransferBytes}. */
    public Builder maxTransferBytes(long value) {
      maxTransferBytes = value;
      return this;
    }

    /** See {@link ControllerOptions#dataPointers}. */
    public Builder dataPointers(DataPointerMode value) {
      dataPointers = value;
      return this;
    }

    /** See {@link ControllerOptions#retries}. */
    public Builder retries(int value) {
      retries = value;
      return this;
    }

    /** See {@link ControllerOptions#hostMemoryBufferBytes}. */
    public Builder hostMemoryBufferBytes(long value) {
      hostMemoryBufferBytes = value;
      return this;
    }

    /** See {@link ControllerOptions#asyncEvents}. */
    public Builder asyncEvents(boolean value) {
      asyncEvents = value;
      return this;
    }

    /** See {@link ControllerOptions#keepAlive}. */
    public Builder keepAlive(Duration value) {
      keepAlive = value;
      return this;
    }

    /**
     * Checks and builds.
     *
     * @throws InvalidRequestException naming the option that is out of range
     */
    public ControllerOptions build() {
      return new ControllerOptions(
          allowWrite,
          ioTimeout,
          adminTimeout,
          recoveryTimeout,
          formatTimeout,
          shutdownTimeout,
          adminEntries,
          queuePairs,
          maxTransferBytes,
          dataPointers,
          retries,
          hostMemoryBufferBytes,
          asyncEvents,
          keepAlive);
    }
  }
}
