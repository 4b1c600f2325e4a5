package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.memory.FakeGpu;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.sim.media.Media;
import io.gpunvme.sim.media.RamMedia;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The mover by itself, on media that fail when they are told to. */
class RemoteMoverTest {
  private static final long SIZE = 4 << 20;
  private static final int CHUNKS = (int) (BounceRing.BYTES / BounceRing.CHUNK);

  /** Memory that does not say so, and fails at an access of the test's choice. */
  private static final class Fragile implements Media {
    private final RamMedia bytes = new RamMedia(SIZE);
    private int left = Integer.MAX_VALUE;

    private void access() throws IOException {
      if (left-- <= 0) {
        throw new IOException("worn out");
      }
    }

    @Override
    public long size() {
      return SIZE;
    }

    @Override
    public void read(long position, MemorySegment target, long offset, long length)
        throws IOException {
      access();
      bytes.read(position, target, offset, length);
    }

    @Override
    public void write(long position, MemorySegment source, long offset, long length)
        throws IOException {
      access();
      bytes.write(position, source, offset, length);
    }

    @Override
    public void zero(long position, long length) throws IOException {
      bytes.zero(position, length);
    }

    @Override
    public void trim(long position, long length) throws IOException {
      bytes.trim(position, length);
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
      bytes.close();
    }
  }

  private final DmaSpace dma = new DmaSpace(48, 1, region -> {});
  private final RemoteChannels channels = new RemoteChannels(dma, Arena.ofAuto(), failure -> {});
  private final RemoteMover mover = new RemoteMover(dma, channels);
  private final FakeGpu gpu = new FakeGpu(m -> dma.map(m));
  private final Fragile media = new Fragile();
  private final SimNamespace ns = new SimNamespace(1, "test", 512, media, false);
  private final MemorySegment remote = Arena.ofShared().allocate(SIZE, 4096);
  private final MemorySegment local = Arena.ofAuto().allocate(4096, 4096);
  private final DmaRegion localRegion = new DmaRegion(0, 4096, local, true);
  private final DmaRegion region;

  RemoteMoverTest() {
    dma.busMaster(true);
    long base = dma.map(gpu.memory(remote)).busAddress(0);
    region = dma.find(base, SIZE);
  }

  @AfterEach
  void close() {
    gpu.release();
    channels.closeAll();
    gpu.requireNoMisuse();
    assertThat(gpu.openPorts()).isZero();
    media.close();
  }

  private SimCommand command(int opcode) {
    SimCommand c = new SimCommand(dma, channels, localRegion);
    c.opcode = opcode;
    return c;
  }

  private SimCommand begin(int opcode, long bytes) throws IOException {
    SimCommand c = command(opcode);
    c.data.add(region, 0, bytes);
    assertThat(mover.begin(c, ns, 0)).isEqualTo(CommandExecutor.COPY);
    return c;
  }

  @Test
  void aMediumThatFailsWhenReadEndsTheCommandWithWhatIsUnderWay() throws IOException {
    gpu.hold(512);
    media.left = 2;
    SimCommand c = begin(IoOpcode.READ, 5 * BounceRing.CHUNK);
    assertThat(gpu.underWay()).isEqualTo(2);
    mover.poll();
    assertThat(mover.takeOver()).as("two copies are still under way").isNull();
    gpu.release();
    assertThat(mover.poll()).isEqualTo(2);
    assertThat(mover.takeOver()).isSameAs(c);
    assertThat(c.transfer.status()).isEqualTo(StatusCode.UNRECOVERED_READ_ERROR.status());
    assertThat(mover.isIdle()).isTrue();
    assertThat(gpu.startedWrites()).isEqualTo(2);
  }

  @Test
  void aMediumThatFailsWhenWrittenEndsTheCommand() throws IOException {
    media.left = 1;
    SimCommand c = begin(IoOpcode.WRITE, 3 * BounceRing.CHUNK);
    while (mover.takeOver() == null) {
      mover.poll();
    }
    assertThat(c.transfer.status()).isEqualTo(StatusCode.WRITE_FAULT.status());
    media.left = Integer.MAX_VALUE;
    SimCommand next = begin(IoOpcode.WRITE, 2 * BounceRing.BYTES);
    while (mover.takeOver() == null) {
      mover.poll();
    }
    assertThat(next.transfer.status()).as("the ring is whole again").isZero();
  }

  @Test
  void hostPiecesThatFailLeaveNothingUnderWay() {
    SimCommand c = command(IoOpcode.READ);
    c.data.add(region, 0, 512);
    c.data.add(localRegion, 0, 512);
    media.left = 0;
    assertThatThrownBy(() -> mover.begin(c, ns, 0)).isInstanceOf(IOException.class);
    assertThat(mover.isIdle()).isTrue();
    assertThat(gpu.openPorts()).isZero();
  }

  @Test
  void piecesGoWhereTheyBelong() throws IOException {
    remote.set(ValueLayout.JAVA_INT, 8192, 11);
    local.set(ValueLayout.JAVA_INT, 512, 22);
    remote.set(ValueLayout.JAVA_INT, 0, 33);
    SimCommand c = command(IoOpcode.WRITE);
    c.data.add(region, 8192, 512);
    c.data.add(localRegion, 512, 1024);
    c.data.add(region, 0, 4);
    mover.begin(c, ns, 100);
    mover.poll();
    assertThat(mover.takeOver()).isSameAs(c);
    MemorySegment stored = media.bytes.view(0, SIZE);
    assertThat(stored.get(ValueLayout.JAVA_INT, 100)).isEqualTo(11);
    assertThat(stored.get(ValueLayout.JAVA_INT, 612)).isEqualTo(22);
    assertThat(stored.get(ValueLayout.JAVA_INT, 1636)).isEqualTo(33);
  }

  /** The one that waits is not overtaken, though the next one would find room. */
  @Test
  void waitingIsInOrder() throws IOException {
    gpu.hold(512);
    begin(IoOpcode.READ, (CHUNKS - 1) * BounceRing.CHUNK + 512);
    SimCommand waits = begin(IoOpcode.READ, BounceRing.CHUNK);
    SimCommand small = begin(IoOpcode.READ, 512);
    mover.poll();
    assertThat(waits.transfer.isWaiting()).isTrue();
    assertThat(small.transfer.isWaiting()).isTrue();
    gpu.release();
    mover.poll();
    mover.poll();
    assertThat(mover.takeOver()).isNotNull();
    assertThat(mover.takeOver()).isSameAs(waits);
    assertThat(mover.takeOver()).isSameAs(small);
  }

  @Test
  void settlingOneLeavesTheOthers() throws IOException {
    SimCommand first = begin(IoOpcode.READ, BounceRing.BYTES);
    SimCommand cut = begin(IoOpcode.READ, BounceRing.BYTES);
    SimCommand last = begin(IoOpcode.READ, BounceRing.BYTES);
    mover.settle(cut);
    assertThat(cut.transfer.isCut()).isTrue();
    assertThat(mover.isIdle()).isFalse();
    while (!first.transfer.isOver() || !last.transfer.isOver()) {
      mover.poll();
    }
    mover.settle(first);
    assertThat(first.transfer.isCut()).as("it was over").isFalse();
    assertThat(mover.takeOver()).isSameAs(last);
    assertThat(mover.takeOver()).isNull();
    assertThat(mover.isIdle()).isTrue();
  }
}
