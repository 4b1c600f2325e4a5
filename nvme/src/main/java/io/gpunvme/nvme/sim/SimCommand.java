package io.gpunvme.nvme.sim;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * One command between its fetch and its completion. Pooled: belongs to one worker for ever and is
 * guarded by that worker's lock.
 */
final class SimCommand {
  /** Where a command stands. */
  enum State {
    /** In the pool. */
    FREE,
    /** Fetched; executes when {@link #due}. */
    SCHEDULED,
    /** Being executed. */
    RUNNING,
    /** Executed but for data that is being copied to or from remote memory. */
    COPYING,
    /** Neither executing nor scheduled: an asynchronous event request, or lost by a fault. */
    HELD,
    /** Executed; its completion is not posted yet. */
    FINISHED
  }

  /** {@link #heapIndex} of a command that is not in the scheduler's heap. */
  static final int NOT_SCHEDULED = -1;

  /**
   * The controller's own copy of the 64 bytes: the host may change its entry once it is fetched.
   */
  final MemorySegment sqe;

  /** The memory the data pointer names, once {@link DataPointer#resolve} was called. */
  final ScatterList data;

  /** How far its data has come while {@link State#COPYING}. */
  final RemoteTransfer transfer = new RemoteTransfer();

  /** Reads the command's PRP list, if it has one. */
  final PrpCursor prps;

  /** Reads the command's SGL, if it has one. */
  final SglWalker sgl;

  /** The queue the entry came from; null in the pool only. */
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

  /** Where it stands. */
  State state = State.FREE;

  /** When it executes or, finished, when its completion is posted: {@link Worker#now} time. */
  long due;

  /** Tells commands with the same {@link #due} apart: the smaller goes first. */
  long order;

  /** Position in the scheduler's heap. */
  int heapIndex = NOT_SCHEDULED;

  /** Completions of the queue that must still overtake this one (a reordering fault). */
  int overtakers;

  /** Whether this command holds its CID; not if another outstanding one had it already. */
  boolean ownsCid;

  /** Whether it is in the list of the queue's outstanding commands; then its neighbours there. */
  boolean linked;

  @Nullable SimCommand next;

  @Nullable SimCommand previous;

  /** Next in the completion queue's list of completions held back. */
  @Nullable SimCommand nextHeldBack;

  SimCommand(MemorySegment sqe, DmaSpace dma, RemoteChannels channels, MemorySegment bitBucket) {
    this.sqe = sqe;
    data = new ScatterList(channels);
    prps = new PrpCursor(dma, channels.window());
    sgl = new SglWalker(dma, channels.window(), bitBucket, data);
  }
}
