package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.NativeCompiler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@link StripeSet} and {@link DeviceSet}; what kernels do: {@link KernelStorageContract}. */
class DeviceSetTest {
  private static final KernelStorageOptions OPTIONS =
      KernelStorageOptions.in(Placement.HOST).with(1, 32);

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final FakeGpu gpu = new FakeGpu();
  private final List<Device> devices = new ArrayList<>();

  @AfterEach
  void close() {
    devices.forEach(Device::close);
    gpu.close();
  }

  private StripeSet.Member member(String address, int nsid, long slba) {
    Device device = Device.open(address, ControllerOptions.defaults());
    devices.add(device);
    return new StripeSet.Member(device.controller(), device.controller().namespace(nsid), slba);
  }

  private KernelStorage storage() {
    return KernelStorage.open(devices, gpu, OPTIONS);
  }

  @ParameterizedTest
  @CsvSource({
    "'',        1024, 4096,   without members",
    "0 0,       1536, 3072,   is not a power of two of at least 512",
    "0 0,       256,  4096,   is not a power of two of at least 512",
    "0 0,       0,    4096,   is not a power of two of at least 512",
    "0 0,       1024, 0,      is not whole units",
    "0 0,       1024, -2048,  is not whole units",
    "0 0,       1024, 1024,   is not whole units",
    "0 0,       1024, 3072,   is not whole units",
    "0,         1024, 1000,   is not whole units",
    "0 0,       4611686018427387904, 4611686018427387904, is not whole units",
    "0 0,       1024, 16384,  does not have 8192 bytes",
    "0 9,       1024, 8192,   does not have 4096 bytes",
    "0 -1,      1024, 2048,   does not have",
    "0 16,      1024, 2048,   does not have",
    "0 9223372036854775807, 1024, 2048, does not have",
  })
  void whatIsNoSetIsRefused(String slbas, long unit, long bytes, String why) {
    List<StripeSet.Member> members =
        slbas.isEmpty()
            ? List.of()
            : IntStream.range(0, slbas.split(" ").length)
                .mapToObj(i -> member("sim:size=7680", 1, Long.parseLong(slbas.split(" ")[i])))
                .toList();
    assertThatThrownBy(() -> new StripeSet(members, unit, bytes))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(why);
  }

  @Test
  void blocksAreTheLargestOfTheMembers() {
    StripeSet.Member small = member("sim:size=64KiB,lba=512", 1, 3);
    StripeSet.Member large = member("sim:size=64KiB,lba=4096", 1, 0);
    StripeSet set = new StripeSet(List.of(small, large, small), 8192, 3 * 8192);
    assertThat(set.blockSize()).isEqualTo(4096);
    assertThat(set.blocks()).isEqualTo(6);
    assertThat(set.controllers()).containsExactly(small.controller(), large.controller());
    assertThatThrownBy(() -> new StripeSet(List.of(small, large), 2048, 4096))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("at least 4096");
  }

  @Test
  void theStorageHasTheMembersAndClosesTheSet() {
    StripeSet.Member one = member("sim:size=1MiB,ns2.size=1MiB", 1, 0);
    try (KernelStorage storage = storage()) {
      StripeSet set = new StripeSet(List.of(one), 512, 1 << 20);
      DeviceSet open = storage.set(set);
      assertThat(open.set()).isEqualTo(set).isEqualTo(StripeSet.of(one.controller(), 1));
      DeviceSet closed = storage.set(set);
      closed.close();
      closed.close();
      assertThatThrownBy(closed::deviceAddress)
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("this set is closed");
      StripeSet.Member stranger = member("sim:size=1MiB", 1, 0);
      StripeSet.Member second =
          new StripeSet.Member(one.controller(), one.controller().namespace(2), 0);
      for (StripeSet.Member other : List.of(stranger, second)) {
        assertThatThrownBy(() -> storage.set(new StripeSet(List.of(one, other), 512, 1024)))
            .isInstanceOf(InvalidRequestException.class)
            .hasMessageContaining("is none of this storage");
      }
      assertThat(open.deviceAddress()).isNotZero();
      storage.close();
      assertThatThrownBy(open::deviceAddress).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> storage.set(set)).isInstanceOf(IllegalStateException.class);
    }
  }

  /** With as many units as there can be. */
  @ParameterizedTest
  @CsvSource({
    "1, 9, 4611686018427387904",
    "2, 9, 2305843009213693952",
    "3, 9, 1152921504606846976",
    "4, 9, 1152921504606846976",
    "5, 12, 576460752303423488",
    "7, 40, 576460752303423488",
    "16, 20, 281474976710656",
  })
  void kernelsFindEachBlock(int count, int unitBits, long bytes) throws Throwable {
    List<StripeSet.Member> members = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      members.add(member("sim:media=null,size=" + bytes, 1, 0));
    }
    long unit = 1L << unitBits;
    MethodHandle locate =
        new CLibrary(
                NativeCompiler.CPP.library(
                    "locate",
                    """
                    #include "gpunvme/gpunvme.cuh"
                    using namespace gpunvme;
                    extern "C" int locate(const DeviceSet* set, u64 block, u64* within) {
                      return static_cast<int>(set->locate(block, *within));
                    }
                    """,
                    "-O1",
                    DeviceSources.INCLUDE))
            .function("locate", int.class, long.class, long.class, MemorySegment.class);
    SplittableRandom random = new SplittableRandom(seed);
    long perUnit = unit / 512;
    try (KernelStorage storage = storage();
        DeviceSet set = storage.set(new StripeSet(members, unit, bytes / unit * unit * count))) {
      MemorySegment within = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);
      long blocks = set.set().blocks();
      for (int i = 0; i < 200_000; i++) {
        long block = random.nextLong(blocks);
        if (i < 4 * count) {
          block = i < 2 * count ? i * perUnit : blocks - 1 - (i - 2L * count) * perUnit;
        } else if (i % 3 == 0) {
          block = block / perUnit / count * count * perUnit;
        }
        long number = block / perUnit;
        int member = (int) locate.invokeExact(set.deviceAddress(), block, within);
        assertThat(member).as("block %d, seed %d", block, seed).isEqualTo((int) (number % count));
        assertThat(within.get(ValueLayout.JAVA_LONG, 0))
            .as("block %d, seed %d", block, seed)
            .isEqualTo(number / count * perUnit + block % perUnit);
      }
    }
  }
}
