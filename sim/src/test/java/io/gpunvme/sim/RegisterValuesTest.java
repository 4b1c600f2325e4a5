package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Crto;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What registers hold, and how they may be accessed. */
class RegisterValuesTest {
  private static SimConfigBuilder config() {
    return SimConfig.builder().workers(0);
  }

  @Test
  void capabilitiesFollowTheConfiguration() {
    SimConfig config = config().mqes(127).dstrd(2).to(7).mpsMax(3).contiguousQueues(false).build();
    try (RawHost host = RawHost.attach(config)) {
      assertThat(host.cap)
          .returns(127, r -> r.get(Cap.MQES))
          .returns(2, r -> r.get(Cap.DSTRD))
          .returns(7, r -> r.get(Cap.TO))
          .returns(0, r -> r.get(Cap.MPSMIN))
          .returns(3, r -> r.get(Cap.MPSMAX))
          .returns(false, r -> r.isSet(Cap.CQR))
          .returns(0, r -> r.get(Cap.AMS))
          .returns(1, r -> r.get(Cap.CSS))
          .returns(true, r -> r.isSet(Cap.NSSRS))
          .returns(false, r -> r.isSet(Cap.CMBS))
          .returns(0, r -> r.get(Cap.CRMS));
      assertThat(host.bar.read32(Registers.VS)).isEqualTo(Vs.V1_4.value());
      assertThat(host.bar.read32(Registers.CRTO)).isZero();
    }
  }

  @Test
  void version2TellsItsReadyTimeout() {
    try (RawHost host = RawHost.attach(config().version(Vs.V2_0).to(9).build())) {
      assertThat(host.cap.get(Cap.CRMS)).isEqualTo(1);
      assertThat(new Crto(host.bar.read32(Registers.CRTO)).get(Crto.CRWMT)).isEqualTo(9);
    }
  }

  @Test
  void eightBytesAreTwoHalves() {
    try (RawHost host = RawHost.attach(config().build())) {
      Bar bar = host.bar;
      assertThat(bar.read64(Registers.CAP))
          .isEqualTo(Integer.toUnsignedLong(bar.read32(0)) | (long) bar.read32(4) << 32)
          .isEqualTo(host.cap.value());
      bar.write32(Registers.ASQ + 4, 0x12345678);
      bar.write32(Registers.ASQ, 0x9ABCDEFF);
      assertThat(bar.read64(Registers.ASQ)).isEqualTo(0x123456789ABCD000L);
      bar.write64(Registers.ACQ, 0xFEDCBA9876543FFFL);
      assertThat(bar.read32(Registers.ACQ)).isEqualTo(0x76543000);
      assertThat(bar.read32(Registers.ACQ + 4)).isEqualTo(0xFEDCBA98);
    }
  }

  @Test
  void reservedBitsReadAsZero() {
    try (RawHost host = RawHost.attach(config().build())) {
      host.bar.write32(Registers.AQA, -1);
      assertThat(host.bar.read32(Registers.AQA)).isEqualTo(0x0FFF_0FFF);
      host.bar.write32(Registers.CC, 0xFFFF_3FFE);
      assertThat(host.bar.read32(Registers.CC)).isEqualTo(0x00FF_3FF0);
    }
  }

  @ParameterizedTest
  @ValueSource(
      ints = {
        Registers.CAP,
        Registers.CAP + 4,
        Registers.VS,
        0x18,
        Registers.CMBLOC,
        Registers.CMBSZ,
        Registers.BPINFO,
        Registers.CMBMSC,
        Registers.CMBSTS,
        Registers.CRTO,
        Registers.NSSD,
        0x70,
        0xDFC,
        Registers.PMRCAP,
        0xFFC
      })
  void readOnlyAndReservedRegistersIgnoreWrites(int offset) {
    try (RawHost host = RawHost.attach(config().build())) {
      int before = host.bar.read32(offset);
      host.bar.write32(offset, ~before);
      assertThat(host.bar.read32(offset)).isEqualTo(before);
      assertThat(host.csts().value()).isZero();
    }
  }

  @Test
  void interruptMaskIsSetAndClearedByOnes() {
    try (RawHost host = RawHost.attach(config().build())) {
      host.bar.write32(Registers.INTMS, 0xF0);
      host.bar.write32(Registers.INTMS, 0x0F);
      host.bar.write32(Registers.INTMC, 0x81);
      assertThat(host.bar.read32(Registers.INTMS)).isEqualTo(0x7E);
      assertThat(host.bar.read32(Registers.INTMC)).isEqualTo(0x7E);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {-4, 1, 2, 3, 0x2000, Long.MAX_VALUE, Long.MIN_VALUE})
  void wrongOffsetsAreTheCallersMistake(long offset) {
    try (RawHost host = RawHost.attach(config().build())) {
      assertThat(host.bar.size()).isEqualTo(0x2000);
      assertThatThrownBy(() -> host.bar.read32(offset)).isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> host.bar.write32(offset, 0))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> host.bar.read64(offset)).isInstanceOf(InvalidRequestException.class);
    }
  }

  @Test
  void doorbellsAreMemoryAndDoNotRead() {
    try (RawHost host = RawHost.attach(config().build())) {
      MemorySegment doorbells = host.bar.memory(Registers.DOORBELLS, 4096);
      host.bar.write32(Registers.DOORBELLS + 8, 77);
      assertThat(doorbells.get(ValueLayout.JAVA_INT, 8)).isEqualTo(77);
      assertThat(host.bar.read32(Registers.DOORBELLS + 8)).isZero();
      assertThatThrownBy(() -> host.bar.memory(0, 4096))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> host.bar.memory(Registers.DOORBELLS, 4097))
          .isInstanceOf(InvalidRequestException.class);
    }
  }

  @Test
  void theBarHoldsEveryDoorbell() {
    try (RawHost host = RawHost.attach(config().dstrd(4).ioQueues(100).build())) {
      assertThat(Long.bitCount(host.bar.size())).isEqualTo(1);
      long last = Registers.cqHeadDoorbell(100, 4);
      assertThat(host.bar.memory(last, 4).byteSize()).isEqualTo(4);
    }
  }

  @Test
  void withoutMemorySpaceNothingAnswers() {
    try (RawHost host = RawHost.attach(config().build())) {
      ConfigSpace space = host.controller.config();
      int command = space.read(ConfigSpace.COMMAND, 2);
      space.write(ConfigSpace.COMMAND, 2, command & ~ConfigSpace.COMMAND_MEMORY);
      assertThat(host.bar.read32(Registers.VS)).isEqualTo(-1);
      assertThat(host.bar.read64(Registers.CAP)).isEqualTo(-1);
      host.bar.write32(Registers.AQA, 5);
      space.write(ConfigSpace.COMMAND, 2, command);
      assertThat(host.bar.read32(Registers.AQA)).isZero();
    }
  }

  @Test
  void aClosedControllerIsGone() {
    RawHost host = RawHost.start(config().cmbBytes(4096).build());
    SimulatedController controller = host.controller;
    Bar msix = controller.bar(4);
    host.close();
    controller.close();
    assertThat(host.bar.read32(Registers.CSTS)).isEqualTo(-1);
    assertThat(host.bar.read64(Registers.CAP)).isEqualTo(-1);
    assertThat(controller.config().read(0, 4)).isEqualTo(-1);
    assertThat(controller.config().read(0, 2)).isEqualTo(0xFFFF);
    assertThat(controller.config().read(0, 1)).isEqualTo(0xFF);
    assertThat(msix.read32(0)).isEqualTo(-1);
    assertThat(controller.bar(2).read32(0)).isEqualTo(-1);
    host.bar.write32(Registers.CC, 1);
    host.bar.write32(Registers.DOORBELLS, 1);
    controller.config().write(ConfigSpace.COMMAND, 2, 0);
    controller.bar(2).write32(0, 1);
    msix.write32(0, 1);
    controller.reset();
    assertThat(controller.poll()).isZero();
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = arena.allocate(4096, 4096);
      assertThatThrownBy(() -> controller.map(memory)).isInstanceOf(DmaMappingException.class);
    }
  }

  @Test
  void barsThatDoNotExist() {
    try (RawHost host = RawHost.attach(config().build())) {
      for (int bar : new int[] {-1, 1, 2, 3, 5, 6}) {
        assertThatThrownBy(() -> host.controller.bar(bar))
            .isInstanceOf(InvalidRequestException.class);
      }
    }
  }
}
