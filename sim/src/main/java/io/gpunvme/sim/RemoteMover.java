package io.gpunvme.sim;

import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.media.Media;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/**
 * Moves one worker's data between media and remote memory while the worker goes on with other
 * commands. Guarded by the worker's lock.
 *
 * <p>A medium that is memory is copied from and to directly. Otherwise data goes through a bounce
 * ring, piece by piece; a command that finds no room in it waits, and those behind it too, so that
 * none starves. A command is over when all its copies are; its completion comes after that.
 */
final class RemoteMover {
  private final DmaSpace dma;
  private final RemoteChannels channels;
  private final Deque<SimCommand> waiting = new ArrayDeque<>();
  private final Deque<SimCommand> over = new ArrayDeque<>();
  private int moving;

  RemoteMover(DmaSpace dma, RemoteChannels channels) {
    this.dma = dma;
    this.channels = channels;
  }

  /** Whether no command's data is moving. */
  boolean isIdle() {
    return moving == 0;
  }

  /**
   * Begins to move the data of a Read or Write: pieces in host memory now, the others meanwhile.
   *
   * @param position where on the medium, bytes
   * @return {@link CommandExecutor#COPY}; the command turns up in {@link #takeOver}
   * @throws IOException if the medium fails before anything is under way
   */
  int begin(SimCommand c, SimNamespace ns, long position) throws IOException {
    RemoteTransfer t = c.transfer;
    t.begin(ns, position, c.data.count());
    moveHostPieces(c, ns.media(), position);
    moving++;
    if (!waiting.isEmpty() || !start(c)) {
      t.waiting(true);
      waiting.add(c);
    }
    endIfOver(c);
    return CommandExecutor.COPY;
  }

  /** The host may unmap its memory as soon as this pass ends, so these cannot wait. */
  private static void moveHostPieces(SimCommand c, Media media, long position) throws IOException {
    ScatterList data = c.data;
    long at = position;
    for (int i = 0; i < data.count(); i++) {
      if (data.remote(i) == null) {
        if (isRead(c)) {
          media.read(at, data.segment(i), data.offset(i), data.length(i));
        } else {
          media.write(at, data.segment(i), data.offset(i), data.length(i));
        }
      }
      at += data.length(i);
    }
  }

  private static boolean isRead(SimCommand c) {
    return c.opcode == IoOpcode.READ;
  }

  /** Starts what copies there is room for; false if there is none for the rest. */
  private boolean start(SimCommand c) {
    RemoteTransfer t = c.transfer;
    try {
      while (t.hasMore()) {
        int i = t.piece();
        long left = c.data.length(i) - t.skip();
        DmaRegion region = c.data.remote(i);
        if (region == null) {
          t.advance(left, c.data.length(i));
        } else if (!dma.isReachable(region)) {
          t.fail(StatusCode.DATA_TRANSFER_ERROR.status());
        } else if (!start(c, channels.of(region), c.data.offset(i) + t.skip(), left)) {
          return false;
        }
      }
    } catch (RemoteFailure e) {
      t.fail(StatusCode.DATA_TRANSFER_ERROR.status());
    } catch (IOException e) {
      t.fail(isRead(c) ? StatusCode.UNRECOVERED_READ_ERROR.status() : IoCommands.writeFailure(e));
    }
    return true;
  }

  private boolean start(SimCommand c, RemoteChannel channel, long offset, long left)
      throws IOException {
    RemoteTransfer t = c.transfer;
    Media media = t.namespace().media();
    MemorySegment direct = media.view(t.position(), left);
    if (direct != null) {
      if (!isRead(c)) {
        media.prepare(t.position(), left);
      }
      copy(c, channel, offset, direct, BounceRing.NONE);
      return true;
    }
    BounceRing ring = channel.bounce();
    long bytes = Math.min(left, BounceRing.CHUNK);
    long place = ring.take(bytes);
    if (place == BounceRing.NONE) {
      return false;
    }
    MemorySegment chunk = ring.memory().asSlice(ring.offset(place), bytes);
    if (isRead(c)) {
      try {
        media.read(t.position(), chunk, 0, bytes);
      } catch (IOException e) {
        ring.takeBack(place);
        throw e;
      }
    }
    copy(c, channel, offset, chunk, place);
    return true;
  }

  private static void copy(
      SimCommand c, RemoteChannel channel, long offset, MemorySegment host, long place) {
    RemoteTransfer t = c.transfer;
    long bytes = host.byteSize();
    long ticket = channel.start(isRead(c), offset, host);
    channel.copies().add(new RemoteCopy(ticket, c, t.position(), place, bytes));
    t.started();
    t.advance(bytes, c.data.length(t.piece()));
  }

  /** Looks which copies are over and starts others in their place. Returns how many were over. */
  int poll() {
    int ended = endCopies();
    while (!waiting.isEmpty() && start(waiting.getFirst())) {
      SimCommand c = waiting.removeFirst();
      c.transfer.waiting(false);
      endIfOver(c);
    }
    return ended;
  }

  private int endCopies() {
    int ended = 0;
    for (int i = 0; i < channels.count(); i++) {
      RemoteChannel channel = channels.get(i);
      RemoteCopy copy;
      while ((copy = channel.takeOver()) != null) {
        end(channel, copy);
        ended++;
      }
    }
    return ended;
  }

  private void end(RemoteChannel channel, RemoteCopy copy) {
    SimCommand c = copy.command();
    RemoteTransfer t = c.transfer;
    t.ended();
    if (channel.isBroken()) {
      t.fail(StatusCode.DATA_TRANSFER_ERROR.status());
    } else if (copy.bounce() != BounceRing.NONE) {
      BounceRing ring = channel.bounce();
      if (!isRead(c)) {
        store(t, ring.memory(), ring.offset(copy.bounce()), copy);
      }
      ring.giveBack(copy.bounce(), copy.bytes());
    }
    endIfOver(c);
  }

  private static void store(RemoteTransfer t, MemorySegment from, long offset, RemoteCopy copy) {
    try {
      t.namespace().media().write(copy.position(), from, offset, copy.bytes());
    } catch (IOException e) {
      t.fail(IoCommands.writeFailure(e));
    }
  }

  private void endIfOver(SimCommand c) {
    if (c.transfer.isOver()) {
      over.add(c);
    }
  }

  /** The next command whose data has moved, or failed to; null if there is none. */
  @Nullable SimCommand takeOver() {
    SimCommand c = over.poll();
    if (c != null) {
      moving--;
    }
    return c;
  }

  /**
   * Takes a command out: starts no more of its copies and returns when those under way are over.
   * {@link RemoteTransfer#isCut} says whether something was left out.
   */
  void settle(SimCommand c) {
    RemoteTransfer t = c.transfer;
    t.cut();
    if (t.isWaiting()) {
      waiting.remove(c);
      t.waiting(false);
    }
    while (t.isUnderWay()) {
      if (endCopies() == 0) {
        Thread.yield();
      }
    }
    over.remove(c);
    moving--;
  }

  /** Returns when nothing is copied to or from a region any more, which has been unmapped. */
  void release(DmaRegion region) {
    RemoteChannel channel = channels.find(region);
    if (channel == null) {
      return;
    }
    while (!channel.copies().isEmpty()) {
      if (endCopies() == 0) {
        Thread.yield();
      }
    }
    channels.close(region);
  }
}
