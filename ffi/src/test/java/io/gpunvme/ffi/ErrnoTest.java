package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.junit.jupiter.api.Test;

final class ErrnoTest {
  @Test
  void knownNumbersHaveTheirNames() {
    assertThat(Errno.name(Errno.EPERM)).isEqualTo("EPERM");
    assertThat(Errno.name(Errno.ENOTTY)).isEqualTo("ENOTTY");
    assertThat(Errno.name(Errno.EOPNOTSUPP)).isEqualTo("EOPNOTSUPP");
    assertThat(Errno.name(133)).isEqualTo("EHWPOISON");
  }

  @Test
  void numbersWithoutNameKeepTheirNumber() {
    assertThat(Errno.name(0)).isEqualTo("errno 0");
    assertThat(Errno.name(-2)).isEqualTo("errno -2");
    assertThat(Errno.name(41)).isEqualTo("errno 41");
    assertThat(Errno.name(134)).isEqualTo("errno 134");
  }

  @Test
  void textIsTheLibrarys() {
    assertThat(Errno.text(Errno.ENOENT)).isEqualTo("No such file or directory");
    assertThat(Errno.text(4711)).contains("4711");
  }

  /** Every name against glibc's own table, where it has one (2.32 and newer). */
  @Test
  void allNamesAgreeWithTheLibrary() throws Throwable {
    Linker linker = Linker.nativeLinker();
    var symbol = linker.defaultLookup().find("strerrorname_np");
    assumeTrue(symbol.isPresent(), "the C library has no strerrorname_np");
    MethodHandle name =
        linker.downcallHandle(symbol.get(), FunctionDescriptor.of(ADDRESS, JAVA_INT));
    for (int errno = 1; errno <= 140; errno++) {
      MemorySegment text = (MemorySegment) name.invokeExact(errno);
      String expected = text.address() == 0 ? "errno " + errno : text.reinterpret(64).getString(0);
      assertThat(Errno.name(errno)).as("errno %d", errno).isEqualTo(expected);
    }
  }
}
