package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Prp;
import io.gpunvme.nvme.spec.SglDescriptor;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Random commands, many at a time, on pages of host memory and of two devices mixed in any way,
 * against byte arrays. Every byte of every buffer is checked.
 */
class RemoteMixTest {
  private static final int PAGE = 4096;
  private static final int BLOCK = 512;
  private static final int MOST = 96 << 10;
  private static final int ROUNDS = 60;
  private static final int BATCH = 8;

  /** Blocks and pages that belong to one command of a batch at a time. */
  private static final int MEDIA = BATCH * MOST;

  @TempDir Path folder;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final SplittableRandom random = new SplittableRandom(seed);
  private final byte[] medium = new byte[MEDIA];
  private final Map<DmaBuffer, byte[]> models = new HashMap<>();
  private RawHost host;
  private DmaBuffer[] buffers;
  private DmaBuffer[] lists;

  /** A piece of a command's data. */
  private record Piece(DmaBuffer buffer, int offset, int bytes) {}

  @ParameterizedTest
  @CsvSource({"ram, 0", "ram, 3", "file, 0", "file, 7"})
  void anyMixtureMovesTheRightBytes(String kind, int delay) {
    NamespaceConfig disk =
        kind.equals("ram")
            ? NamespaceConfig.ram(MEDIA, BLOCK)
            : NamespaceConfig.file(folder.resolve("disk"), MEDIA, BLOCK);
    SimConfig config =
        SimConfig.builder().workers(0).latencyNanos(0).maxTransfer(0).namespace(disk).build();
    try (RawHost started = RawHost.start(config)) {
      host = started;
      host.gpu.delay(() -> random.nextInt(delay + 1));
      RawQueue q = host.createQueue(1, 32, 32);
      buffers =
          new DmaBuffer[] {
            host.buffer(BATCH * 32 * PAGE),
            host.remoteBuffer(BATCH * 32 * PAGE),
            host.remoteBuffer(BATCH * 32 * PAGE)
          };
      lists = new DmaBuffer[] {host.buffer(BATCH * 2 * PAGE), host.remoteBuffer(BATCH * 2 * PAGE)};
      for (DmaBuffer b : buffers) {
        byte[] noise = new byte[(int) b.size()];
        random.nextBytes(noise);
        b.memory().copyFrom(MemorySegment.ofArray(noise));
        models.put(b, noise);
      }
      for (int round = 0; round < ROUNDS; round++) {
        batch(q, "seed " + seed + " round " + round);
      }
      assertThat(host.gpu.startedReads()).isGreaterThan(ROUNDS);
      assertThat(host.gpu.startedWrites()).isGreaterThan(ROUNDS);
    }
  }

  private void batch(RawQueue q, String what) {
    for (int i = 0; i < BATCH; i++) {
      q.push(command(i));
    }
    q.ring();
    for (int i = 0; i < BATCH; i++) {
      assertThat(host.next(q).status()).as(what).isZero();
    }
    for (DmaBuffer b : buffers) {
      assertThat(b.memory().mismatch(MemorySegment.ofArray(models.get(b)))).as(what).isEqualTo(-1);
    }
  }

  /** A command on its own part of the medium and of the buffers, and what it does to the models. */
  private MemorySegment command(int number) {
    int blocks = 1 + random.nextInt(MOST / BLOCK);
    int first = number * (MOST / BLOCK) + random.nextInt(MOST / BLOCK - blocks + 1);
    boolean read = random.nextBoolean();
    int bytes = blocks * BLOCK;
    MemorySegment s = RawHost.io(read ? IoOpcode.READ : IoOpcode.WRITE, 1, first, blocks, 0, 0);
    List<Piece> pieces = random.nextInt(3) == 0 ? sgl(s, number, bytes) : prp(s, number, bytes);
    int at = first * BLOCK;
    for (Piece p : pieces) {
      byte[] model = models.get(p.buffer);
      if (read) {
        System.arraycopy(medium, at, model, p.offset, p.bytes);
      } else {
        System.arraycopy(model, p.offset, medium, at, p.bytes);
      }
      at += p.bytes;
    }
    return s;
  }

  /** Pages of this command's part of the buffers in any order, each once. */
  private List<Piece> pages(int number, int count) {
    List<Piece> all = new ArrayList<>();
    int from = random.nextInt(33 - Math.min(32, count));
    for (int i = 0; i < count; i++) {
      // Runs in one buffer are pieces that get merged; changes of buffer are what is looked for.
      DmaBuffer b = buffers[random.nextInt(4) == 0 ? random.nextInt(3) : (number + i / 5) % 3];
      all.add(new Piece(b, (number * 32 + (from + i) % 32) * PAGE, PAGE));
    }
    return all;
  }

  private List<Piece> prp(MemorySegment s, int number, int bytes) {
    int offset = random.nextInt(2) * 4 * random.nextInt(PAGE / 4);
    List<Piece> pieces = pages(number, Math.ceilDiv(offset + bytes, PAGE));
    Piece first = pieces.getFirst();
    int rest = bytes;
    pieces.set(0, new Piece(first.buffer, first.offset + offset, Math.min(rest, PAGE - offset)));
    rest -= pieces.getFirst().bytes;
    for (int i = 1; i < pieces.size(); i++) {
      Piece p = pieces.get(i);
      pieces.set(i, new Piece(p.buffer, p.offset, Math.min(rest, PAGE)));
      rest -= PAGE;
    }
    long[] bus = pieces.stream().mapToLong(p -> p.buffer.busAddress(p.offset)).toArray();
    Sqe.dptr1(s, 0, bus[0]);
    if (bus.length == 2) {
      Sqe.dptr2(s, 0, bus[1]);
    } else if (bus.length > 2) {
      Sqe.dptr2(s, 0, list(number, Arrays.copyOfRange(bus, 1, bus.length)));
    }
    return pieces;
  }

  /** A PRP list near the end of a page, so that it is often chained, anywhere. */
  private long list(int number, long[] entries) {
    DmaBuffer first = lists[random.nextInt(2)];
    DmaBuffer second = lists[random.nextInt(2)];
    long start = number * 2L * PAGE + PAGE - 8L * (1 + random.nextInt(6));
    long next = (number * 2L + 1) * PAGE;
    DmaBuffer at = first;
    long offset = start;
    for (int i = 0; i < entries.length; i++) {
      if (offset % PAGE == PAGE - 8 && i < entries.length - 1) {
        Prp.put(at.memory(), offset, second.busAddress(next));
        at = second;
        offset = next;
      }
      Prp.put(at.memory(), offset, entries[i]);
      offset += 8;
    }
    return first.busAddress(start);
  }

  private List<Piece> sgl(MemorySegment s, int number, int bytes) {
    List<Piece> pieces = new ArrayList<>();
    int rest = bytes;
    for (Piece p : pages(number, 31)) {
      int most = pieces.size() == 30 ? PAGE : 1 + random.nextInt(PAGE);
      int n = Math.min(rest, most);
      if (n > 0) {
        pieces.add(new Piece(p.buffer, p.offset + random.nextInt(PAGE - n + 1), n));
      }
      rest -= n;
    }
    if (rest > 0) {
      return prp(s, number, bytes);
    }
    DmaBuffer list = lists[random.nextInt(2)];
    long at = number * 2L * PAGE + 8L * random.nextInt(400);
    for (int i = 0; i < pieces.size(); i++) {
      Piece p = pieces.get(i);
      long bus = p.buffer.busAddress(p.offset);
      SglDescriptor.put(list.memory(), at + i * 16L, SglDescriptor.DATA_BLOCK, bus, p.bytes);
    }
    Sqe.psdt(s, 0, 1);
    SglDescriptor.put(
        s, Sqe.DPTR1, SglDescriptor.LAST_SEGMENT, list.busAddress(at), pieces.size() * 16);
    return pieces;
  }
}
