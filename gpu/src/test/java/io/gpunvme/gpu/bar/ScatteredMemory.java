package io.gpunvme.gpu.bar;

import io.gpunvme.nvme.memory.RemotePort;
import io.gpunvme.nvme.pci.PciAddress;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Memory whose pages of 64 KiB lie anywhere, which only this knows: it plays the GPU. */
final class ScatteredMemory implements MarkedMemory {
  /** What happens after marks were written, the first time, the second, … */
  interface Meddler {
    void after(int round, MarkKey key);
  }

  private final List<MemorySegment> pages;
  private final PageCut cut;
  private final Owner owner;
  private Meddler meddler = (round, key) -> {};
  int open;

  /**
   * @param pages 64 KiB each
   * @param cut what of them belongs to this memory
   */
  ScatteredMemory(List<MemorySegment> pages, PageCut cut, PciAddress address, long ownerBytes) {
    this.pages = pages;
    this.cut = cut;
    this.owner = new Owner(address, ownerBytes);
  }

  void meddle(Meddler what) {
    meddler = what;
  }

  @Override
  public String name() {
    return "a GPU's memory";
  }

  @Override
  public long size() {
    return cut.size();
  }

  @Override
  public Owner owner() {
    return owner;
  }

  @Override
  public long pageOffset() {
    return cut.pageOffset();
  }

  @Override
  public PageMarks openMarks() {
    PageMarks marks = MarkedMemory.super.openMarks();
    open++;
    return new PageMarks() {
      private int round;

      @Override
      public void write(MarkKey key) {
        marks.write(key);
        meddler.after(++round, key);
      }

      @Override
      public long firstWrong(MarkKey key) {
        return marks.firstWrong(key);
      }

      @Override
      public void close() {
        marks.close();
        open--;
      }
    };
  }

  /** Copies, page by page. */
  void copy(long offset, MemorySegment host, boolean toHost) {
    long done = 0;
    while (done < host.byteSize()) {
      long at = cut.pageOffset() + offset + done;
      long inPage = at % PageCut.PAGE;
      long bytes = Math.min(PageCut.PAGE - inPage, host.byteSize() - done);
      MemorySegment page = pages.get((int) (at / PageCut.PAGE)).asSlice(inPage, bytes);
      if (toHost) {
        MemorySegment.copy(page, 0, host, done, bytes);
      } else {
        MemorySegment.copy(host, done, page, 0, bytes);
      }
      done += bytes;
    }
  }

  @Override
  public RemotePort openPort(RemotePort.Use use) {
    return new RemotePort() {
      @Override
      public void read(long offset, MemorySegment to) {
        copy(offset, to, true);
      }

      @Override
      public void write(long offset, MemorySegment from) {
        copy(offset, from, false);
      }

      @Override
      public long startRead(long offset, MemorySegment to) {
        read(offset, to);
        return 0;
      }

      @Override
      public long startWrite(long offset, MemorySegment from) {
        write(offset, from);
        return 0;
      }

      @Override
      public boolean isDone(long ticket) {
        return true;
      }

      @Override
      public MemorySegment bounce(long bytes) {
        return Arena.ofAuto().allocate(bytes, 64);
      }

      @Override
      public void close() {}
    };
  }
}
