package io.gpunvme.sim;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * The counters of a controller since its creation. Resets do not clear them.
 *
 * <p>Each worker counts in a stripe of its own; readers add the stripes up, so a sum taken while
 * commands run is a moment old but never torn.
 */
public final class SimStats {
  /** What is counted besides commands by opcode and by queue. */
  enum Counter {
    COMPLETIONS,
    FAILED,
    READ_BYTES,
    WRITTEN_BYTES,
    DOORBELL_WRITES,
    PEER_DOORBELL_WRITES,
    PEER_IO_COMMANDS,
    DOORBELL_ERRORS,
    DUPLICATE_CIDS,
    HELD_BACK,
    FAULTS,
    INTERRUPTS
  }

  private static final int OPCODES = 256;
  private static final int COUNTERS = Counter.values().length;
  private static final int ADMIN = COUNTERS;
  private static final int IO = ADMIN + OPCODES;
  private static final int QUEUES = IO + OPCODES;

  private final Stripe[] stripes;
  private final int queues;
  private final DmaSpace dma;

  SimStats(int workers, int queues, DmaSpace dma) {
    this.queues = queues;
    this.dma = dma;
    stripes = new Stripe[workers];
    for (int i = 0; i < workers; i++) {
      stripes[i] = new Stripe(QUEUES + queues);
    }
  }

  Stripe stripe(int worker) {
    return stripes[worker];
  }

  /** Commands fetched, all queues. */
  public long commands() {
    return sum(ADMIN, IO + OPCODES);
  }

  /** Admin commands fetched with this opcode, 0..255. */
  public long adminCommands(int opcode) {
    return sum(ADMIN + opcode, ADMIN + opcode + 1);
  }

  /** I/O commands fetched with this opcode, 0..255. */
  public long ioCommands(int opcode) {
    return sum(IO + opcode, IO + opcode + 1);
  }

  /**
   * I/O commands fetched whose doorbell was rung through this window. None of {@link
   * DoorbellWindow#CPU} means: whatever data has moved, the CPU did not ask for it.
   */
  public long ioCommands(DoorbellWindow window) {
    long peer = counter(Counter.PEER_IO_COMMANDS);
    return window == DoorbellWindow.PEER ? peer : Math.max(0, sum(IO, IO + OPCODES) - peer);
  }

  /** Commands fetched from this submission queue; 0 is the admin queue. */
  public long commandsOn(int qid) {
    return qid < 0 || qid >= queues ? 0 : sum(QUEUES + qid, QUEUES + qid + 1);
  }

  /** Completions posted. */
  public long completions() {
    return counter(Counter.COMPLETIONS);
  }

  /** Completions posted with a status other than success. */
  public long failed() {
    return counter(Counter.FAILED);
  }

  /** Bytes moved to the host by successful commands. */
  public long readBytes() {
    return counter(Counter.READ_BYTES);
  }

  /** Bytes moved from the host by successful commands. */
  public long writtenBytes() {
    return counter(Counter.WRITTEN_BYTES);
  }

  /** Changes of doorbells that were seen; several writes between two looks are one. */
  public long doorbellWrites() {
    return counter(Counter.DOORBELL_WRITES);
  }

  /** As {@link #doorbellWrites()}, those seen through one window, the admin queue's included. */
  public long doorbellWrites(DoorbellWindow window) {
    long peer = counter(Counter.PEER_DOORBELL_WRITES);
    return window == DoorbellWindow.PEER ? peer : Math.max(0, doorbellWrites() - peer);
  }

  /** Doorbell values that no correct host writes, and doorbells of queues that do not exist. */
  public long doorbellErrors() {
    return counter(Counter.DOORBELL_ERRORS);
  }

  /** Commands refused because their CID was in use on their queue. */
  public long duplicateCids() {
    return counter(Counter.DUPLICATE_CIDS);
  }

  /** Completions that had to wait because the host had not made room in the completion queue. */
  public long heldBack() {
    return counter(Counter.HELD_BACK);
  }

  /** Commands to which a fault rule was applied. */
  public long faults() {
    return counter(Counter.FAULTS);
  }

  /** Interrupts due to completions, several completions at once counting once. */
  public long interrupts() {
    return counter(Counter.INTERRUPTS);
  }

  /** Accesses to bus addresses that were not mapped, or while the function was not a bus master. */
  public long dmaRefusals() {
    return dma.refusals();
  }

  @Override
  public String toString() {
    return ("commands %d (I/O: CPU %d, peer %d), completions %d (failed %d), read %d B, written %d"
            + " B, doorbell writes %d (peer %d, errors %d), duplicate CIDs %d, held back %d,"
            + " faults %d, interrupts %d, DMA refusals %d")
        .formatted(
            commands(),
            ioCommands(DoorbellWindow.CPU),
            ioCommands(DoorbellWindow.PEER),
            completions(),
            failed(),
            readBytes(),
            writtenBytes(),
            doorbellWrites(),
            doorbellWrites(DoorbellWindow.PEER),
            doorbellErrors(),
            duplicateCids(),
            heldBack(),
            faults(),
            interrupts(),
            dmaRefusals());
  }

  private long counter(Counter c) {
    return sum(c.ordinal(), c.ordinal() + 1);
  }

  private long sum(int from, int to) {
    long sum = 0;
    for (Stripe s : stripes) {
      for (int i = from; i < to; i++) {
        sum += s.get(i);
      }
    }
    return sum;
  }

  /** One worker's counters: written under that worker's lock, read by anybody. */
  static final class Stripe {
    private static final VarHandle LONGS =
        MethodHandles.arrayElementVarHandle(long[].class).withInvokeExactBehavior();

    private final long[] values;

    Stripe(int size) {
      values = new long[size];
    }

    void add(Counter c, long n) {
      bump(c.ordinal(), n);
    }

    /** Bytes read and written so far; by the worker. */
    long moved() {
      return values[Counter.READ_BYTES.ordinal()] + values[Counter.WRITTEN_BYTES.ordinal()];
    }

    void fetched(boolean admin, int opcode, int qid, boolean byPeer) {
      bump((admin ? ADMIN : IO) + opcode, 1);
      bump(QUEUES + qid, 1);
      if (byPeer && !admin) {
        add(Counter.PEER_IO_COMMANDS, 1);
      }
    }

    void doorbell(Doorbell d) {
      add(Counter.DOORBELL_WRITES, 1);
      if (d.isByPeer()) {
        add(Counter.PEER_DOORBELL_WRITES, 1);
      }
    }

    private void bump(int i, long n) {
      // Opaque: the readers of statistics are the other side; they need whole values, no order.
      LONGS.setOpaque(values, i, values[i] + n);
    }

    private long get(int i) {
      return (long) LONGS.getOpaque(values, i);
    }
  }
}
