package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.LibrarySearch;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/**
 * gpunvme's own libcufile, which programs find in place of NVIDIA's when they run under {@code
 * gpunvme cufile}. gpunvme itself must never call it: it calls gpunvme.
 *
 * <p>Where a process has it, NVIDIA's cannot be loaded beside it, not even by its file: what
 * NVIDIA's calls of itself goes through names that the dynamic loader finds in ours first.
 */
public final class OwnCuFile {
  /** What tells it from NVIDIA's. */
  static final String SYMBOL = "gpunvme_cufile_version";

  static final LibrarySearch.Other LIBRARY =
      new LibrarySearch.Other("gpunvme's own libcufile", SYMBOL);

  private static final MethodHandle OPEN =
      Downcall.of(FunctionDescriptor.of(ADDRESS, ADDRESS, JAVA_INT));
  private static final MethodHandle FIND =
      Downcall.of(FunctionDescriptor.of(ADDRESS, ADDRESS, ADDRESS));
  private static final MethodHandle PLACE =
      Downcall.of(FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
  private static final MethodHandle CLOSE = Downcall.of(FunctionDescriptor.of(JAVA_INT, ADDRESS));
  private static final int LAZY_AND_ONLY_IF_LOADED = 1 | 4; // RTLD_LAZY | RTLD_NOLOAD
  private static final long PLACE_BYTES =
      4 * ADDRESS.byteSize(); // Dl_info; the file's name is first

  private OwnCuFile() {}

  /**
   * The file of ours that this process has loaded: because a variable preloads it, or a library of
   * the program is linked with it.
   */
  public static Optional<String> inProcess() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment library =
          (MemorySegment)
              OPEN.invokeExact(
                  function("dlopen"),
                  arena.allocateFrom("libcufile.so.0"),
                  LAZY_AND_ONLY_IF_LOADED);
      if (library.address() == 0) {
        return Optional.empty();
      }
      MemorySegment symbol =
          (MemorySegment) FIND.invokeExact(function("dlsym"), library, arena.allocateFrom(SYMBOL));
      Optional<String> place =
          symbol.address() == 0 ? Optional.empty() : Optional.of(place(symbol, arena));
      int _ = (int) CLOSE.invokeExact(function("dlclose"), library);
      return place;
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }

  @SuppressWarnings("restricted")
  private static String place(MemorySegment symbol, Arena arena) throws Throwable {
    MemorySegment info = arena.allocate(PLACE_BYTES, ADDRESS.byteSize());
    int found = (int) PLACE.invokeExact(function("dladdr"), symbol, info);
    return found == 0
        ? "libcufile.so.0"
        : info.get(ADDRESS, 0).reinterpret(Long.MAX_VALUE).getString(0);
  }

  private static MemorySegment function(String name) {
    return Linker.nativeLinker().defaultLookup().findOrThrow(name);
  }

  /** Why a process that has ours cannot use NVIDIA's. */
  public static String besideOwn(String file) {
    return "this process has loaded "
        + LIBRARY.name()
        + " ("
        + file
        + "), and NVIDIA's does not work beside it";
  }

  /** Whether a file is ours; it is not opened as a library. */
  public static boolean is(Path file) {
    return LIBRARY.is(file);
  }

  /**
   * The file, ours or another's, that programs started from here find by the name libcufile.so.0;
   * those that bring one of their own may have that.
   */
  public static Optional<Path> forPrograms(Map<String, String> environment, Path root) {
    return CuFile.search(environment, root).locateForOthers(environment, root);
  }

  /** The first file of ours where {@link CuFile#find} looks for NVIDIA's. */
  public static Optional<Path> find(Map<String, String> environment, Path root) {
    return CuFile.search(environment, root).locateOther(environment, root);
  }
}
