package io.gpunvme.gpu.bar;

import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.HostMemory;
import io.gpunvme.nvme.memory.PeerMemory;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.PciFunction;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * A controller that reaches one GPU's memory through that GPU's BAR: each buffer is searched there
 * when it is mapped, and exactly its pages are mapped, in as few runs as they lie in. What the
 * controller can reach is then what it was given, and nothing of the GPU's other memory; and a
 * buffer that is freed is out of its reach before the GPU gives the memory to somebody else. (The
 * whole BAR mapped once would cost one entry of the IOMMU's table instead of one for each run, of
 * which VFIO has 65535, and let every mistake reach all of the GPU's memory. GPUs allocate in
 * pieces of 2 MiB: 24 GiB are 12288 runs at most.)
 *
 * <p>Safe for all threads.
 */
public final class StaticBarFunction implements PciFunction {
  private final PciFunction controller;
  private final PeerBar bar;

  /** Owns both from now on. */
  public StaticBarFunction(PciFunction controller, PeerBar bar) {
    this.controller = controller;
    this.bar = bar;
  }

  /** The BAR that GPU memory is looked for in. */
  public PeerBar peer() {
    return bar;
  }

  /**
   * Finds the memory behind the BAR and maps it. Its contents are the same afterwards; nobody may
   * write to it meanwhile. Seconds for many GiB: see {@link BarSearch}.
   *
   * @throws BarSearchException if it is not there, or not all of it
   * @throws DmaMappingException if it is another function's, or the BAR shows only part of that
   *     function's memory
   */
  @Override
  public BusRange map(RemoteMemory memory) {
    if (!(memory instanceof MarkedMemory marked)) {
      throw new DmaMappingException(
          memory.name() + " cannot be searched for in " + bar.name() + ": it cannot be marked");
    }
    MarkedMemory.Owner owner = marked.owner();
    if (!owner.address().equals(bar.address())) {
      throw new DmaMappingException(
          "%s belongs to %s, and %s reaches memory of %s (gpu-bar=)"
              .formatted(memory.name(), owner.address(), name(), bar.address()));
    }
    if (bar.size() < owner.bytes()) {
      throw new DmaMappingException(
          ("%s has %d MiB, but the GPU has %d MiB: it is a window that moves, not all of the"
               + " memory. It must be as large as the memory (Resizable BAR and Above 4G Decoding"
               + " in the firmware's setup) and static (the patched open kernel modules)")
              .formatted(bar.name(), bar.size() >> 20, owner.bytes() >> 20));
    }
    return controller.mapPeer(runs(marked));
  }

  private List<PeerMemory> runs(MarkedMemory memory) {
    long[] places = BarSearch.find(bar.memory(), bar.name(), memory);
    PageCut cut = new PageCut(memory.pageOffset(), memory.size());
    List<PeerMemory> runs = new ArrayList<>();
    long start = places[0];
    long end = start;
    for (int page = 0; page < places.length; page++) {
      if (places[page] != end) {
        runs.add(bar.part(start, end - start));
        start = places[page];
        end = start;
      }
      end += cut.bytes(page);
    }
    runs.add(bar.part(start, end - start));
    return runs;
  }

  @Override
  public BusRange mapPeer(List<PeerMemory> parts) {
    return controller.mapPeer(parts);
  }

  @Override
  public BusRange map(MemorySegment memory) {
    return controller.map(memory);
  }

  @Override
  public HostMemory allocate(long bytes) {
    return controller.allocate(bytes);
  }

  @Override
  public String name() {
    return controller.name();
  }

  @Override
  public Bar bar(int index) {
    return controller.bar(index);
  }

  @Override
  public ConfigSpace config() {
    return controller.config();
  }

  @Override
  public NumaHome home() {
    return controller.home();
  }

  @Override
  public int addressBits() {
    return controller.addressBits();
  }

  @Override
  public void reset() {
    controller.reset();
  }

  /** The controller first: it must not reach what is unmapped. */
  @Override
  public void close() {
    try (bar) {
      controller.close();
    }
  }
}
