package io.gpunvme.nvme.pci.kmod;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.NumaOption;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.nvme.pci.host.FakeFunctionTree;
import io.gpunvme.nvme.pci.host.FunctionLock;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is refused, and what is asked of the module for a function that is not. */
class KmodFunctionTest {
  @TempDir Path folder;
  private FakeFunctionTree machine;
  private FakeModule module;

  @BeforeEach
  void build() throws IOException {
    machine = new FakeFunctionTree(folder);
    machine.resources();
    module = new FakeModule();
  }

  private void bound() throws IOException {
    loaded();
    machine.driver("gpunvme");
    machine.node("gpunvme/0000:01:00.0");
    try (RandomAccessFile bar = new RandomAccessFile(node().toFile(), "rw")) {
      bar.setLength(0x4000);
    }
  }

  private void loaded() throws IOException {
    Files.createDirectories(folder.resolve("sys/module/gpunvme"));
  }

  private Path node() {
    return KmodFunction.node(machine.paths(), FakeFunctionTree.ADDRESS);
  }

  private KmodOptions options() {
    return KmodOptions.defaults().withPaths(machine.paths());
  }

  private KmodFunction open() {
    return open(false);
  }

  private KmodFunction open(boolean consent) {
    return KmodFunction.open(
        FakeFunctionTree.ADDRESS, options().withNoIommu(consent), file -> module);
  }

  private void assertRefused(String... parts) {
    assertThatThrownBy(this::open)
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("0000:01:00.0")
        .hasMessageContainingAll(parts);
    // Whatever failed, the function is free for the next attempt.
    FunctionLock.take(machine.paths(), FakeFunctionTree.ADDRESS).close();
  }

  @Test
  void noSuchFunction() {
    assertThatThrownBy(() -> KmodFunction.open(new PciAddress(0, 9, 0, 0), options()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("gpunvme list");
  }

  @Test
  void itsNodeIsTheKernelsOrTheOptions() throws IOException {
    bound();
    machine.numaNodes();
    try (KmodFunction function = open()) {
      assertThat(function.home().node()).isEqualTo(1);
    }
    assertThatThrownBy(
            () ->
                KmodFunction.open(
                    FakeFunctionTree.ADDRESS,
                    options().withNuma(NumaOption.parse("2")),
                    file -> module))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("numa=2");
    open().close();
  }

  @Test
  void theModuleIsNotLoaded() throws IOException {
    machine.driver("nvme");
    assertRefused("not loaded", "scripts/kmod-load", "gpunvme bind 0000:01:00.0 --kmod");
  }

  @Test
  void anotherDriverHasIt() throws IOException {
    loaded();
    assertRefused("bound to no driver", "gpunvme bind 0000:01:00.0 --kmod");
    machine.driver("nvme");
    assertRefused("bound to the driver nvme", "gpunvme bind 0000:01:00.0 --kmod");
  }

  @Test
  void itsFileIsMissing() throws IOException {
    loaded();
    machine.driver("gpunvme");
    assertRefused(node().toString(), "ENOENT", "udevadm");
  }

  @Test
  void itsFileCannotBeOpened() {
    Path node = Path.of("/dev/gpunvme/0000:01:00.0");
    assertThat(refusal(node, Errno.EACCES)).hasMessageContainingAll("group", "gpunvme $USER");
    assertThat(refusal(node, Errno.EPERM)).hasMessageContainingAll("CAP_SYS_RAWIO", "locked down");
    assertThat(refusal(node, Errno.EOPNOTSUPP))
        .hasMessageContainingAll("no IOMMU isolates", "enable_unsafe_noiommu_mode", "noiommu=true");
    assertThat(refusal(node, Errno.ETIMEDOUT)).hasMessageContaining("does not stop");
    assertThat(refusal(node, Errno.EBUSY)).hasMessageContaining("fuser /dev/gpunvme/0000:01:00.0");
    assertThat(refusal(node, Errno.ENODEV)).hasMessageContaining("gone");
    assertThat(refusal(node, Errno.EIO)).hasMessageContaining("EIO");
  }

  private static InvalidRequestException refusal(Path node, int errno) {
    PosixException e = new PosixException("open", node.toString(), errno);
    InvalidRequestException refusal = KmodRefusals.node(FakeFunctionTree.ADDRESS, node, e);
    assertThat(refusal).hasCause(e);
    return refusal;
  }

  @Test
  void whatIsThereIsNoModule() throws IOException {
    bound();
    assertThatThrownBy(() -> KmodFunction.open(FakeFunctionTree.ADDRESS, options()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContainingAll("does not answer", "ENOTTY");
    FunctionLock.take(machine.paths(), FakeFunctionTree.ADDRESS).close();
  }

  @Test
  void theModuleIsOfAnotherVersion() throws IOException {
    bound();
    module.version = 1;
    assertRefused("version 1", "knows 2", "scripts/kmod-load");
  }

  @Test
  void anAnswerThatMakesNoSense() throws IOException {
    bound();
    for (long bytes : new long[] {0, 0x1000, -1, Long.MAX_VALUE}) {
      module.barBytes = bytes;
      assertRefused("BAR0 has " + bytes + " bytes");
    }
    module.barBytes = 0x4000;
    for (int bits : new int[] {0, 31, 65, -1}) {
      module.addressBits = bits;
      assertRefused(bits + " bits");
    }
    module.addressBits = 64;
    module.page = 1 << 30;
    assertRefused("a page has");
  }

  @Test
  void aSecondUserIsRefused() throws IOException {
    bound();
    try (KmodFunction first = open()) {
      assertThatThrownBy(this::open)
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("in use by another gpunvme");
      assertThat(first.name()).isEqualTo("kmod:0000:01:00.0");
    }
    open().close();
  }

  @Test
  void mapsAndGivesBack() throws IOException {
    bound();
    KmodFunction function = open();
    assertThat(function.addressBits()).isEqualTo(48);
    assertThat(function.translated()).isTrue();
    assertThat(function.how()).contains("48 bits", "IOMMU");
    assertThat(function.bar(0).size()).isEqualTo(0x4000);
    function.bar(0).write32(0x14, 0x460001);
    assertThat(function.bar(0).read32(0x14)).isEqualTo(0x460001);
    assertThat(function.bar(0).memory(0x1000, 8).byteSize()).isEqualTo(8);
    assertThatThrownBy(() -> function.bar(2)).hasMessageContaining("has no BAR 2");
    DmaBuffer buffer = DmaBuffer.allocate(function, 3 * 4096);
    assertThat(module.ranges).hasSize(1);
    assertThat(buffer.busAddress(4096)).isEqualTo(buffer.busAddress(0) + 4096);

    function.close();
    function.close();
    buffer.close(); // in any order

    assertThat(function.bar(0).read32(0x14)).isEqualTo(-1);
    assertThat(function.config().read(0, 4)).isEqualTo(-1);
    assertThatThrownBy(() -> DmaBuffer.allocate(function, 4096))
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining("closed");
    function.reset();
    assertThat(module.resets).isZero();
  }

  @Test
  void theFileIsAnotherFunctions() throws IOException {
    bound();
    module.pciFunction = 0x2a1;
    assertRefused("is the file of 0000:02:14.1", "container");
  }

  @Test
  void withoutIsolationItNeedsConsent() throws IOException {
    bound();
    for (int flags : new int[] {0, KmodAbi.DeviceInfo.TRANSLATED}) {
      module.flags = flags;
      assertRefused("all memory of this machine", "kmod:0000:01:00.0,noiommu=true");
      open(true).close();
    }
    module.flags |= KmodAbi.DeviceInfo.ISOLATED;
    assertThatThrownBy(() -> open(true))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("leave it out");
    open().close();
  }

  @Test
  void withoutAnIommuItSaysSo() throws IOException {
    bound();
    module.flags = 0;
    module.addressBits = 64;
    try (KmodFunction function = open(true)) {
      assertThat(function.translated()).isFalse();
      assertThat(function.how()).contains("physical", "64 bits");
      assertThatThrownBy(function::reset)
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("no function level reset");
    }
  }

  @Test
  void resetFailuresAreTyped() throws IOException {
    bound();
    try (KmodFunction function = open()) {
      function.reset();
      assertThat(module.resets).isEqualTo(1);
      module.errors.put(KmodAbi.RESET, Errno.ENODEV);
      assertThatThrownBy(function::reset).isInstanceOf(DeviceGoneException.class);
      module.errors.put(KmodAbi.RESET, Errno.EAGAIN);
      assertThatThrownBy(function::reset)
          .isInstanceOf(ControllerFatalException.class)
          .hasMessageContaining("something else resets it");
      module.errors.put(KmodAbi.RESET, Errno.EINVAL);
      assertThatThrownBy(function::reset)
          .isInstanceOf(ControllerFatalException.class)
          .hasCauseInstanceOf(PosixException.class);
    }
  }

  @Test
  void rootWritesTheCommandRegister() throws IOException {
    bound();
    try (KmodFunction function = open()) {
      function.config().write(ConfigSpace.COMMAND, 2, ConfigSpace.COMMAND_BUS_MASTER);
      assertThat(function.config().read(ConfigSpace.COMMAND, 2)).isEqualTo(4);
      function.config().write(ConfigSpace.COMMAND, 2, 0);
      assertThat(module.resets).isZero();
    }
    byte[] config = Files.readAllBytes(machine.function().resolve("config"));
    assertThat(config[ConfigSpace.COMMAND]).isZero();
  }
}
