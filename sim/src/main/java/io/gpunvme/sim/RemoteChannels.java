package io.gpunvme.sim;

import io.gpunvme.nvme.memory.RemoteMemory;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One worker's channels into remote memory, each opened when it is first needed. Guarded by the
 * worker's lock.
 */
final class RemoteChannels {
  private final DmaSpace dma;
  private final Consumer<RuntimeException> failures;
  private final RemoteWindow window;
  private final List<Entry> entries = new ArrayList<>();

  private record Entry(DmaRegion region, RemoteChannel channel) {}

  /**
   * @param memory the worker's, for what is looked at
   * @param failures told of each failure of a port
   */
  RemoteChannels(DmaSpace dma, Arena memory, Consumer<RuntimeException> failures) {
    this.dma = dma;
    window = new RemoteWindow(this, memory);
    this.failures = failures;
  }

  /**
   * The channel into a remote region.
   *
   * @throws RemoteFailure if the region is not mapped any more
   */
  RemoteChannel of(DmaRegion region) {
    RemoteChannel known = find(region);
    if (known != null) {
      return known;
    }
    RemoteMemory memory = region.remote();
    if (memory == null) {
      throw new IllegalArgumentException("host memory needs no channel");
    }
    // Whoever unmaps takes the region away first and then waits for this worker's lock to close the
    // channel: so none is opened behind its back.
    if (!dma.isMapped(region)) {
      throw new RemoteFailure(memory.name() + " is not mapped any more");
    }
    RemoteChannel channel = new RemoteChannel(memory, failures);
    entries.add(new Entry(region, channel));
    return channel;
  }

  /** The channel into a region if it is open. */
  @Nullable RemoteChannel find(DmaRegion region) {
    for (Entry e : entries) {
      if (e.region == region) {
        return e.channel;
      }
    }
    return null;
  }

  /** How many channels are open. */
  int count() {
    return entries.size();
  }

  /** One of the open channels, 0 ≤ i &lt; {@link #count}. */
  RemoteChannel get(int i) {
    return entries.get(i).channel;
  }

  /** For reading lists; one at a time. */
  RemoteWindow window() {
    return window;
  }

  /** Closes the channel into a region that is being unmapped; its copies have ended. */
  void close(DmaRegion region) {
    for (int i = 0; i < entries.size(); i++) {
      if (entries.get(i).region == region) {
        entries.remove(i).channel.close();
        return;
      }
    }
  }

  /** Closes all channels: the controller is being closed and nothing is under way. */
  void closeAll() {
    while (!entries.isEmpty()) {
      entries.removeLast().channel.close();
    }
  }
}
