package io.gpunvme.cuda.library;

import io.gpunvme.cuda.CudaNotFoundException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Where a library is looked for: a file that an environment variable names and nothing else, or
 * else the names through the dynamic loader ({@code LD_LIBRARY_PATH}, the system's folders), then
 * the names in some folders.
 *
 * @param what the library, for the error
 * @param variable the environment variable
 * @param names file names, the preferred one first
 * @param folders existing or not
 * @param advice what to install
 * @param other a library of the same names that is not meant and is passed over; null: none
 */
public record LibrarySearch(
    String what,
    String variable,
    List<String> names,
    List<Path> folders,
    String advice,
    @Nullable Other other) {
  /**
   * A library that has the names of another.
   *
   * @param name what it is
   * @param symbol tells it: the meant one has no such function
   */
  public record Other(String name, String symbol) {
    /** Whether a file is it, found without opening it as a library. */
    public boolean is(Path file) {
      return ElfNames.has(file, symbol);
    }
  }

  /** Whatever has one of the names is meant. */
  public LibrarySearch(
      String what, String variable, List<String> names, List<Path> folders, String advice) {
    this(what, variable, names, folders, advice, null);
  }

  /**
   * Opens the first one there is; it stays open until the process ends.
   *
   * @throws CudaNotFoundException if there is none
   */
  public NativeLibrary open(Map<String, String> environment) {
    String chosen = environment.get(variable);
    if (chosen != null && !chosen.isEmpty()) {
      if (other != null && isOther(Path.of(chosen))) {
        throw new CudaNotFoundException(
            "%s: %s names %s, which is %s; correct it or unset it"
                .formatted(what, variable, chosen, other.name()));
      }
      return openFile(Path.of(chosen))
          .orElseThrow(
              () ->
                  new CudaNotFoundException(
                      what
                          + ": "
                          + variable
                          + " names "
                          + chosen
                          + ", which cannot be opened as a"
                          + " library; correct it or unset it"));
    }
    for (String name : names) {
      Optional<NativeLibrary> found = openName(name).filter(library -> !isOther(library));
      if (found.isPresent()) {
        return found.get();
      }
    }
    for (Path folder : folders) {
      for (String name : names) {
        Path file = folder.resolve(name);
        Optional<NativeLibrary> found =
            Files.exists(file) && !isOther(file) ? openFile(file) : Optional.empty();
        if (found.isPresent()) {
          return found.get();
        }
      }
    }
    throw new CudaNotFoundException(
        what + " not found",
        "looked for "
            + String.join(", ", names)
            + " where the dynamic loader looks (LD_LIBRARY_PATH, system folders)"
            + (folders.isEmpty() ? "" : " and in " + join(folders))
            + "; "
            + advice
            + ", or set "
            + variable
            + " to the file");
  }

  /**
   * The file that would be opened, found without opening it; empty also where only the dynamic
   * loader's cache knows it.
   *
   * @param root what the folders lie in, {@code /}
   */
  public Optional<Path> locate(Map<String, String> environment, Path root) {
    return files(environment, root).filter(file -> !isOther(file)).findFirst();
  }

  /**
   * The file that other programs find by these names, whatever it is: of what is preloaded, or
   * where {@link #locate} looks without the variable.
   */
  public Optional<Path> locateForOthers(Map<String, String> environment, Path root) {
    Stream<Path> preloaded =
        split(environment.getOrDefault("LD_PRELOAD", ""))
            .filter(file -> names.contains(String.valueOf(file.getFileName())));
    Map<String, String> theirs = new HashMap<>(environment);
    theirs.remove(variable);
    return Stream.concat(preloaded.filter(Files::isRegularFile), files(theirs, root)).findFirst();
  }

  /** The first file that is passed over, where {@link #locate} looks. */
  public Optional<Path> locateOther(Map<String, String> environment, Path root) {
    return files(environment, root).filter(this::isOther).findFirst();
  }

  private Stream<Path> files(Map<String, String> environment, Path root) {
    String chosen = environment.get(variable);
    Stream<Path> all =
        chosen != null && !chosen.isEmpty()
            ? Stream.of(Path.of(chosen))
            : Stream.concat(loaderPath(environment), folders.stream().map(f -> under(root, f)))
                .flatMap(folder -> names.stream().map(folder::resolve));
    return all.filter(Files::isRegularFile);
  }

  private boolean isOther(Path file) {
    return other != null && other.is(file);
  }

  private boolean isOther(NativeLibrary library) {
    return other != null && library.find(other.symbol()).isPresent();
  }

  private static Stream<Path> loaderPath(Map<String, String> environment) {
    return split(environment.getOrDefault("LD_LIBRARY_PATH", ""));
  }

  private static Stream<Path> split(String paths) {
    return Arrays.stream(paths.split("[:;]")).filter(path -> !path.isEmpty()).map(Path::of);
  }

  private static Path under(Path root, Path folder) {
    return Path.of(root.toString(), folder.toString());
  }

  private static String join(List<Path> folders) {
    return String.join(", ", folders.stream().map(Path::toString).toList());
  }

  /** A library at this place; empty if it cannot be opened. */
  @SuppressWarnings("restricted")
  public static Optional<NativeLibrary> openFile(Path file) {
    try {
      return Optional.of(
          new NativeLibrary(file.toString(), SymbolLookup.libraryLookup(file, Arena.global())));
    } catch (IllegalArgumentException e) {
      return Optional.empty(); // The lookup's way to say that it cannot be opened.
    }
  }

  @SuppressWarnings("restricted")
  private static Optional<NativeLibrary> openName(String name) {
    try {
      return Optional.of(new NativeLibrary(name, SymbolLookup.libraryLookup(name, Arena.global())));
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }
}
