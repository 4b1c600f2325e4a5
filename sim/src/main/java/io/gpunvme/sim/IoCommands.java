package io.gpunvme.sim;

import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.media.Media;
import io.gpunvme.sim.media.NoSpaceException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;

/**
 * The NVM Command Set (NVM 1.0, 3.2) except for the commands with range lists.
 *
 * <p>Shared by all workers and without state of its own. Read and Write allocate nothing. A failing
 * medium gives a media error without DNR: the next attempt may succeed.
 */
final class IoCommands implements CommandExecutor {
  private static final int DEAC = 1 << 25;
  private static final int FUA = 1 << 30;

  /** Bytes compared, verified or copied in one go. */
  static final long CHUNK = 64 << 10;

  /** Bytes of a Read or Write that are moved before short commands of other queues have a turn. */
  private static final long PART = 32 << 10;

  private final CommandRules rules;
  private final boolean strict;
  private final boolean sgl;
  private final long mostBytes;
  private final Namespaces namespaces;
  private final FeatureStore features;
  private final DataPointer pointer;
  private final Corruption corruption;
  private final RangeCommands ranges;

  IoCommands(
      SimConfig config,
      Namespaces namespaces,
      FeatureStore features,
      DataPointer pointer,
      FaultPlan faults) {
    rules = new CommandRules(config);
    strict = config.strict();
    sgl = config.sgl();
    mostBytes = config.maxTransfer() == 0 ? Long.MAX_VALUE : config.maxTransfer();
    this.namespaces = namespaces;
    this.features = features;
    this.pointer = pointer;
    corruption = new Corruption(faults);
    ranges = new RangeCommands(pointer);
  }

  @Override
  public int execute(SimCommand c, Worker w) {
    CommandRule rule = rules.io(c.opcode);
    if (rule == null) {
      return StatusCode.INVALID_OPCODE.dnr();
    }
    int status = rule.check(c, sgl, strict);
    if (status != 0) {
      return status;
    }
    int nsid = c.nsid();
    SimNamespace ns = namespaces.active(nsid);
    if (ns == null) {
      boolean all = rule.namespace() == CommandRule.NamespaceUse.ONE_OR_ALL;
      return all && nsid == Sqe.NSID_ALL ? flushAll() : namespaces.check(nsid);
    }
    try {
      return execute(c, w, ns);
    } catch (IOException e) {
      return isRead(c.opcode) ? StatusCode.UNRECOVERED_READ_ERROR.status() : writeFailure(e);
    }
  }

  /** The status for a medium that could not be written. */
  static int writeFailure(IOException e) {
    // Trying again does not make room.
    return e instanceof NoSpaceException
        ? StatusCode.CAPACITY_EXCEEDED.dnr()
        : StatusCode.WRITE_FAULT.status();
  }

  /**
   * Whether the next command of a queue, which is ready to be fetched, moves so little that others
   * hardly wait for it.
   */
  boolean isShort(SubmissionQueue sq) {
    long first = sq.word(0);
    int opcode = (int) first & 0xFF;
    if (opcode != IoOpcode.READ && opcode != IoOpcode.WRITE) {
      return false;
    }
    SimNamespace ns = namespaces.active((int) (first >>> Integer.SIZE));
    // NLB is the lower half of dword 12, and 0-based. Without a namespace it fails at once.
    return ns == null || ((sq.word(6) & 0xFFFF) + 1) << ns.shift() <= PART;
  }

  private static boolean isRead(int opcode) {
    return opcode == IoOpcode.READ || opcode == IoOpcode.COMPARE || opcode == IoOpcode.VERIFY;
  }

  private int execute(SimCommand c, Worker w, SimNamespace ns) throws IOException {
    return switch (c.opcode) {
      case IoOpcode.READ -> read(c, w, ns);
      case IoOpcode.WRITE -> write(c, w, ns);
      case IoOpcode.FLUSH -> {
        ns.media().flush();
        yield 0;
      }
      case IoOpcode.COMPARE -> compare(c, w, ns);
      case IoOpcode.VERIFY -> verify(c, w, ns);
      case IoOpcode.WRITE_ZEROES -> writeZeroes(c, ns);
      case IoOpcode.WRITE_UNCORRECTABLE -> writeUncorrectable(c, ns);
      case IoOpcode.DATASET_MANAGEMENT -> ranges.datasetManagement(c, w, ns);
      case IoOpcode.COPY -> {
        int status = ranges.copy(c, w, ns);
        if (status == 0) {
          flushIfDurable(c, ns.media());
        }
        yield status;
      }
      default -> throw new IllegalStateException("no code for " + Sqe.describe(c.sqe, 0));
    };
  }

  private int flushAll() {
    int status = 0;
    for (SimNamespace ns : namespaces.active()) {
      try {
        ns.media().flush();
      } catch (IOException e) {
        status = writeFailure(e);
      }
    }
    return status;
  }

  /** Resolves the data pointer of a command that moves its logical blocks. */
  private int resolve(SimCommand c, SimNamespace ns, int shift) {
    long bytes = c.blocks() << shift;
    if (bytes > mostBytes) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    int status = ns.checkRange(c.slba(), c.blocks(), shift);
    return status != 0 ? status : pointer.resolve(c, bytes);
  }

  private int resolveForReading(SimCommand c, SimNamespace ns, int shift) {
    int status = resolve(c, ns, shift);
    return status != 0 ? status : checkReadable(c, ns);
  }

  private static int checkReadable(SimCommand c, SimNamespace ns) {
    boolean lost = ns.uncorrectable().intersects(c.slba(), c.blocks());
    return lost ? StatusCode.UNRECOVERED_READ_ERROR.status() : 0;
  }

  private int read(SimCommand c, Worker w, SimNamespace ns) throws IOException {
    int shift = ns.shift();
    int status = resolveForReading(c, ns, shift);
    if (status != 0) {
      return status;
    }
    long slba = c.slba();
    Media media = ns.media();
    // What is read with FUA must be durable (NVM 1.0, 3.2.4).
    if ((c.cdw(12) & FUA) != 0 && !ns.readOnly()) {
      media.flush();
    }
    long position = slba << shift;
    if (c.data.anyRemote() && media.keepsData()) {
      return w.mover().begin(c, ns, position);
    }
    move(c, w, media, position);
    return afterRead(c, w);
  }

  /** Moves the data of a Read or Write, in parts if others may have a turn between them. */
  private static void move(SimCommand c, Worker w, Media media, long start) throws IOException {
    ScatterList data = c.data;
    boolean read = c.opcode == IoOpcode.READ;
    long part = w.mayServeOthers() ? PART : Long.MAX_VALUE;
    long position = start;
    long room = part;
    for (int i = 0; i < data.count(); i++) {
      MemorySegment memory = data.segment(i);
      long at = data.offset(i);
      long end = at + data.length(i);
      while (at < end) {
        if (room == 0) {
          w.serveOthers(c);
          room = part;
        }
        long n = Math.min(room, end - at);
        if (read) {
          media.read(position, memory, at, n);
        } else {
          media.write(position, memory, at, n);
        }
        at += n;
        position += n;
        room -= n;
      }
    }
  }

  private int afterRead(SimCommand c, Worker w) {
    w.stats().add(SimStats.Counter.READ_BYTES, c.data.total());
    return corruption.afterRead(c, w);
  }

  private int write(SimCommand c, Worker w, SimNamespace ns) throws IOException {
    if (ns.readOnly()) {
      return StatusCode.NAMESPACE_WRITE_PROTECTED.dnr();
    }
    int shift = ns.shift();
    int status = resolve(c, ns, shift);
    if (status != 0) {
      return status;
    }
    Media media = ns.media();
    long start = c.slba() << shift;
    if (c.data.anyRemote() && media.keepsData()) {
      return w.mover().begin(c, ns, start);
    }
    media.prepare(start, c.data.total());
    move(c, w, media, start);
    return afterWrite(c, w, ns, start);
  }

  private int afterWrite(SimCommand c, Worker w, SimNamespace ns, long start) throws IOException {
    Media media = ns.media();
    ns.uncorrectable().remove(c.slba(), c.blocks());
    flushIfDurable(c, media);
    w.stats().add(SimStats.Counter.WRITTEN_BYTES, c.data.total());
    return corruption.afterWrite(c, media, start, w);
  }

  /**
   * What is left to do of a Read or Write when its data has been copied; within the worker's pass.
   *
   * @return the command's status
   */
  int copied(SimCommand c, Worker w) {
    RemoteTransfer t = c.transfer;
    if (t.status() != 0) {
      return t.status();
    }
    try {
      return c.opcode == IoOpcode.READ
          ? afterRead(c, w)
          : afterWrite(c, w, t.namespace(), t.start());
    } catch (IOException e) {
      return writeFailure(e);
    } catch (RemoteFailure e) {
      return StatusCode.DATA_TRANSFER_ERROR.status();
    }
  }

  private void flushIfDurable(SimCommand c, Media media) throws IOException {
    if ((c.cdw(12) & FUA) != 0 || !features.writeCacheEnabled()) {
      media.flush();
    }
  }

  private int compare(SimCommand c, Worker w, SimNamespace ns) throws IOException {
    int shift = ns.shift();
    int status = resolveForReading(c, ns, shift);
    if (status != 0) {
      return status;
    }
    long slba = c.slba();
    ScatterList data = c.data;
    MemorySegment scratch = w.scratch(2 * CHUNK);
    long position = slba << shift;
    for (int i = 0; i < data.count(); i++) {
      for (long done = 0; done < data.length(i); done += CHUNK) {
        long n = Math.min(CHUNK, data.length(i) - done);
        ns.media().read(position, scratch, 0, n);
        if (!isEqual(data, i, done, scratch, n)) {
          return StatusCode.COMPARE_FAILURE.dnr();
        }
        position += n;
      }
    }
    w.stats().add(SimStats.Counter.READ_BYTES, data.total());
    return 0;
  }

  /**
   * Whether {@code n} bytes of a piece equal the first of {@code scratch}, which has two chunks.
   */
  private static boolean isEqual(
      ScatterList data, int piece, long skip, MemorySegment scratch, long n) {
    // A copy throws where the host has taken its memory away; comparing would end the process.
    data.copyIn(piece, skip, scratch, CHUNK, n);
    return MemorySegment.mismatch(scratch, 0, n, scratch, CHUNK, CHUNK + n) < 0;
  }

  private int verify(SimCommand c, Worker w, SimNamespace ns) throws IOException {
    long slba = c.slba();
    int shift = ns.shift();
    int status = ns.checkRange(slba, c.blocks(), shift);
    status = status != 0 ? status : checkReadable(c, ns);
    if (status != 0) {
      return status;
    }
    MemorySegment to = w.scratch(CHUNK);
    long end = (slba + c.blocks()) << shift;
    for (long at = slba << shift; at < end; at += CHUNK) {
      ns.media().read(at, to, 0, Math.min(CHUNK, end - at));
    }
    return 0;
  }

  private int writeZeroes(SimCommand c, SimNamespace ns) throws IOException {
    int shift = ns.shift();
    long slba = c.slba();
    int status = checkWrite(ns, slba, c.blocks(), shift);
    if (status != 0) {
      return status;
    }
    if ((c.cdw(12) & DEAC) != 0) {
      ns.media().trim(slba << shift, c.blocks() << shift);
    } else {
      ns.media().zero(slba << shift, c.blocks() << shift);
    }
    ns.uncorrectable().remove(slba, c.blocks());
    flushIfDurable(c, ns.media());
    return 0;
  }

  private static int writeUncorrectable(SimCommand c, SimNamespace ns) {
    int status = checkWrite(ns, c.slba(), c.blocks(), ns.shift());
    if (status == 0) {
      ns.uncorrectable().add(c.slba(), c.blocks());
    }
    return status;
  }

  /** The status for changing a range of blocks. */
  private static int checkWrite(SimNamespace ns, long slba, long blocks, int shift) {
    return ns.readOnly()
        ? StatusCode.NAMESPACE_WRITE_PROTECTED.dnr()
        : ns.checkRange(slba, blocks, shift);
  }
}
