package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

final class SharedMemoryTest {
  private static final int READ_WRITE = Posix.PROT_READ | Posix.PROT_WRITE;

  private static long mappingsNamed(String name) throws IOException {
    return Files.readAllLines(Path.of("/proc/self/maps")).stream()
        .filter(line -> line.contains(name))
        .count();
  }

  private static long descriptorsNamed(String name) throws IOException {
    long count = 0;
    try (var descriptors = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
      for (Path descriptor : descriptors) {
        count += Files.readSymbolicLink(descriptor).toString().contains(name) ? 1 : 0;
      }
    }
    return count;
  }

  @Test
  void isPageAlignedRoundedUpAndZeroed() {
    try (SharedMemory memory = SharedMemory.allocate("test", Posix.pageSize() + 1L)) {
      assertThat(memory.size()).isEqualTo(2L * Posix.pageSize());
      assertThat(memory.segment().byteSize()).isEqualTo(memory.size());
      assertThat(memory.segment().address() % Posix.pageSize()).isZero();
      for (long i = 0; i < memory.size(); i++) {
        assertThat(memory.segment().get(JAVA_BYTE, i)).isZero();
      }
      assertThat(Posix.size(memory.fd())).isEqualTo(memory.size());
    }
  }

  @Test
  void exactMultiplesStayAsTheyAre() {
    try (SharedMemory memory = SharedMemory.allocate("test", 3L * Posix.pageSize())) {
      assertThat(memory.size()).isEqualTo(3L * Posix.pageSize());
    }
  }

  @Test
  void sizesThatCannotBeAreRefused() throws IOException {
    assertThatIllegalArgumentException().isThrownBy(() -> SharedMemory.allocate("test", 0));
    assertThatIllegalArgumentException().isThrownBy(() -> SharedMemory.allocate("test", -4096));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> SharedMemory.allocateHuge("test", Long.MAX_VALUE));
    PosixException e =
        catchThrowableOfType(
            PosixException.class, () -> SharedMemory.allocate("too-much", 1L << 62));
    assertThat(e.errno()).isIn(Errno.ENOMEM, Errno.EINVAL, Errno.EFBIG, Errno.ENOSPC);
    assertThat(descriptorsNamed("too-much")).isZero();
  }

  @Test
  void theDescriptorNamesTheSamePages() {
    try (SharedMemory memory = SharedMemory.allocate("test", 4096);
        Mapping other = Mapping.shared(memory.fd(), 0, 4096, READ_WRITE)) {
      memory.segment().set(JAVA_LONG, 8, 77);
      assertThat(other.segment().get(JAVA_LONG, 8)).isEqualTo(77);
      assertThat(other.segment().address()).isNotEqualTo(memory.segment().address());
    }
  }

  @Test
  void closeReleasesPagesAndDescriptor() throws IOException {
    SharedMemory memory = SharedMemory.allocate("gpunvme-close", 4096);
    assertThat(mappingsNamed("gpunvme-close")).isOne();
    assertThat(descriptorsNamed("gpunvme-close")).isOne();
    memory.close();
    assertThat(mappingsNamed("gpunvme-close")).isZero();
    assertThat(descriptorsNamed("gpunvme-close")).isZero();
  }

  @Test
  void useAfterCloseThrows() {
    SharedMemory memory = SharedMemory.allocate("test", 4096);
    MemorySegment segment = memory.segment();
    memory.close();
    memory.close();
    assertThatIllegalStateException().isThrownBy(() -> segment.get(JAVA_LONG, 0));
    assertThatIllegalStateException().isThrownBy(() -> memory.segment().set(JAVA_LONG, 0, 1));
    assertThatIllegalStateException().isThrownBy(memory::fd);
    assertThat(memory.size()).isEqualTo(Posix.pageSize());
  }

  @Test
  void aMappingOutlivesTheMemoryItWasMadeFrom() {
    SharedMemory memory = SharedMemory.allocate("test", 4096);
    Mapping other = Mapping.shared(memory.fd(), 0, 4096, READ_WRITE);
    memory.segment().set(JAVA_LONG, 0, 5);
    memory.close();
    assertThat(other.segment().get(JAVA_LONG, 0)).isEqualTo(5);
    other.close();
    other.close();
    assertThatIllegalStateException().isThrownBy(() -> other.segment().get(JAVA_LONG, 0));
  }

  @Test
  void aMappingStartsAtItsOffset() {
    try (SharedMemory memory = SharedMemory.allocate("test", 2L * Posix.pageSize());
        Mapping second =
            Mapping.shared(memory.fd(), Posix.pageSize(), Posix.pageSize(), Posix.PROT_READ)) {
      memory.segment().set(JAVA_LONG, Posix.pageSize(), 9);
      assertThat(second.segment().byteSize()).isEqualTo(Posix.pageSize());
      assertThat(second.segment().get(JAVA_LONG, 0)).isEqualTo(9);
    }
  }

  @Test
  void isFoundByWhatLiesInIt() {
    long page = Posix.pageSize();
    try (SharedMemory memory = SharedMemory.allocate("test", 4 * page);
        SharedMemory other = SharedMemory.allocate("test", page)) {
      MemorySegment all = memory.segment();
      assertThat(SharedMemory.find(all)).hasValue(new SharedMemory.Place(memory.fd(), 0));
      assertThat(SharedMemory.find(all.asSlice(page, 3 * page)))
          .hasValue(new SharedMemory.Place(memory.fd(), page));
      assertThat(SharedMemory.find(all.asSlice(4 * page - 1, 1)))
          .hasValue(new SharedMemory.Place(memory.fd(), 4 * page - 1));
      assertThat(SharedMemory.find(other.segment()))
          .hasValue(new SharedMemory.Place(other.fd(), 0));
    }
  }

  @Test
  void otherMemoryIsNotFound() {
    long page = Posix.pageSize();
    SharedMemory memory = SharedMemory.allocate("test", 2 * page);
    MemorySegment all = memory.segment();
    MemorySegment before = MemorySegment.ofAddress(all.address() - page);
    MemorySegment after = MemorySegment.ofAddress(all.address() + 2 * page);
    assertThat(SharedMemory.find(MemorySegment.ofArray(new byte[16]))).isEmpty();
    assertThat(SharedMemory.find(before.reinterpret(2 * page))).isEmpty();
    assertThat(SharedMemory.find(after.reinterpret(page))).isEmpty();
    assertThat(SharedMemory.find(all.asSlice(page).reinterpret(page + 1))).isEmpty();
    try (Mapping view = Mapping.shared(memory.fd(), 0, page, READ_WRITE)) {
      assertThat(SharedMemory.find(view.segment())).as("the same pages elsewhere").isEmpty();
    }
    memory.close();
    assertThat(SharedMemory.find(MemorySegment.ofAddress(all.address()).reinterpret(page)))
        .isEmpty();
  }

  @Test
  void mappingsOfHugePagesAreWhole() {
    try (SharedMemory memory = SharedMemory.allocate("test", 4096)) {
      assertThat(Posix.mappingUnit(memory.fd())).isEqualTo(Posix.pageSize());
    }
    int huge;
    try {
      huge = Posix.memfdCreate("test", Posix.MFD_CLOEXEC | Posix.MFD_HUGETLB | Posix.MFD_HUGE_2MB);
    } catch (PosixException e) {
      Assumptions.abort("this kernel has no huge pages: " + e.getMessage());
      return;
    }
    assertThat(Posix.mappingUnit(huge)).isEqualTo(SharedMemory.HUGE_PAGE);
    Posix.close(huge);
  }

  @Test
  void nobodyCanChangeItsSize() {
    long page = Posix.pageSize();
    try (SharedMemory memory = SharedMemory.allocate("test", 2 * page)) {
      for (long size : new long[] {0, page, 3 * page}) {
        PosixException e =
            catchThrowableOfType(PosixException.class, () -> Posix.ftruncate(memory.fd(), size));
        assertThat(e.errno()).as("%d bytes", size).isEqualTo(Errno.EPERM);
      }
      PosixException e =
          catchThrowableOfType(PosixException.class, () -> Posix.sealSize(memory.fd()));
      assertThat(e.errno()).as("seals that were not there").isEqualTo(Errno.EPERM);
      Posix.ftruncate(memory.fd(), 2 * page);
    }
  }
}
