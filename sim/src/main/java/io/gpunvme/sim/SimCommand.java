package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * One command between its fetch and its completion. Pooled: belongs to one worker for ever and is
 * guarded by that worker's lock.
 *
 * <p>Stores of references into old objects are fences with G1: each would wait until the data just
 * copied has left the store buffer. A command that executes at once therefore costs none: its state
 * is a number, and references that mostly stay the same are stored only when they change.
 */
final class SimCommand {
  /** Where a command stands. */
  static final class State {
    /** In the pool. */
    static final int FREE = 0;

    /** Fetched; executes when {@link #due}. */
    static final int SCHEDULED = 1;

    /** Being executed. */
    static final int RUNNING = 2;

    /** Executed but for data that is being copied to or from remote memory. */
    static final int COPYING = 3;

    /** Neither executing nor scheduled: an asynchronous event request, or lost by a fault. */
    static final int HELD = 4;

    /** Executed; its completion is not posted yet. */
    static final int FINISHED = 5;

    private State() {}
  }

  /** {@link #heapIndex} of a command that is not in the scheduler's heap. */
  static final int NOT_SCHEDULED = -1;

  /**
   * The controller's own copy of the 64 bytes, as little-endian words: the host may change its
   * entry once it is fetched. What every command needs is read from here, for an array costs no
   * checks of memory's kind, owner and alignment.
   */
  final long[] words = new long[Sqe.SIZE / Long.BYTES];

  /** The same bytes. */
  final MemorySegment sqe = MemorySegment.ofArray(words);

  /** The memory the data pointer names, once {@link DataPointer#resolve} was called. */
  final ScatterList data;

  /** How far its data has come while {@link State#COPYING}. */
  final RemoteTransfer transfer = new RemoteTransfer();

  /** Reads the command's PRP list, if it has one. */
  final PrpCursor prps;

  /** Reads the command's SGL, if it has one. */
  final SglWalker sgl;

  /** The queue the entry came from; in the pool, that of its last use. */
  @Nullable SubmissionQueue queue;

  /** Submission queue identifier; 0 is the admin queue. */
  int sqid;

  /** Command identifier, 0..65535. */
  int cid;

  /** Opcode, 0..255. */
  int opcode;

  /** Whether it came from the admin queue. */
  boolean admin;

  /** Dword 0 of the completion. */
  int dw0;

  /** Dword 1 of the completion. */
  int dw1;

  /** The 15-bit status of the completion, valid when {@link State#FINISHED}. */
  int status;

  /** What goes wrong with this command, decided when it was fetched. */
  @Nullable FaultRule fault;

  /** Where it stands, a {@link State}. */
  int state = State.FREE;

  /** When it executes or, finished, when its completion is posted: {@link Worker#now} time. */
  long due;

  /** Tells commands with the same {@link #due} apart: the smaller goes first. */
  long order;

  /** Position in the scheduler's heap. */
  int heapIndex = NOT_SCHEDULED;

  /** Completions of the queue that must still overtake this one (a reordering fault). */
  int overtakers;

  /** Whether its completion was posted before it executed (an early completion, a fault). */
  boolean announced;

  /** Whether this command holds its CID; not if another outstanding one had it already. */
  boolean ownsCid;

  /** Whether it is in the list of the queue's outstanding commands; then its neighbours there. */
  boolean linked;

  @Nullable SimCommand next;

  @Nullable SimCommand previous;

  /** Next in the completion queue's list of completions held back. */
  @Nullable SimCommand nextHeldBack;

  SimCommand(DmaSpace dma, RemoteChannels channels, DmaRegion bitBucket) {
    data = new ScatterList(channels);
    prps = new PrpCursor(dma, channels.window());
    sgl = new SglWalker(dma, channels.window(), bitBucket, data);
  }

  /** Takes over {@link #cid} and {@link #opcode} from {@link #words}. */
  void decode() {
    opcode = (int) words[0] & 0xFF;
    cid = (int) words[0] >>> Short.SIZE;
  }

  /** The byte with FUSE and PSDT. */
  int flags() {
    return (int) words[0] >>> Byte.SIZE & 0xFF;
  }

  /** FUSE. */
  int fuse() {
    return flags() & 3;
  }

  /** PSDT. */
  int psdt() {
    return flags() >>> 6;
  }

  /** NSID. */
  int nsid() {
    return cdw(1);
  }

  /** Command dword n, 0..15. */
  int cdw(int n) {
    long pair = words[n >> 1];
    return (int) ((n & 1) == 0 ? pair : pair >>> Integer.SIZE);
  }

  /** MPTR. */
  long mptr() {
    return words[2];
  }

  /** PRP Entry 1. */
  long prp1() {
    return words[3];
  }

  /** PRP Entry 2. */
  long prp2() {
    return words[4];
  }

  /** SLBA, of commands that have one: an unsigned number. */
  long slba() {
    return words[5];
  }

  /** NLB of such a command, no longer 0-based. */
  long blocks() {
    return (cdw(12) & 0xFFFFL) + 1;
  }
}
