package io.gpunvme.storage;

import io.gpunvme.base.ByteSize;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.NumaOption;
import io.gpunvme.storage.path.cufile.CuFileOptions;
import io.gpunvme.storage.path.pinned.DirectIo;
import io.gpunvme.storage.path.pinned.Engine;
import io.gpunvme.storage.path.pinned.PinnedOptions;
import java.util.Locale;
import java.util.Map;

/**
 * How the paths that read files work, from the options of an address: {@code threads}, {@code
 * chunk}, {@code direct} and {@code numa} for cuFile and pinned memory, {@code engine}, {@code
 * depth}, {@code ring} and {@code streams} for pinned memory.
 *
 * @param pinned of the path {@code pinned}
 * @param cufile of the path {@code cufile}
 * @param numa where threads of both are, and memory that is not a GPU's
 */
record FileOptions(PinnedOptions pinned, CuFileOptions cufile, NumaOption numa) {
  /**
   * Reads options.
   *
   * @throws InvalidRequestException if there is none of a name, or its value makes no sense
   */
  static FileOptions of(Map<String, String> options) {
    PinnedOptions p = PinnedOptions.defaults();
    CuFileOptions c = CuFileOptions.defaults();
    NumaOption numa = NumaOption.AUTO;
    for (Map.Entry<String, String> option : options.entrySet()) {
      String key = option.getKey();
      String value = option.getValue();
      switch (key) {
        case "threads" -> {
          p = p.withThreads(number(key, value));
          c = c.withThreads(number(key, value));
        }
        case "chunk" -> {
          int bytes = Math.toIntExact(Math.min(Integer.MAX_VALUE, size(key, value)));
          p = p.withMemory(bytes, Math.max(bytes, p.ringBytes()));
          c = c.withChunk(bytes);
        }
        case "direct" -> {
          DirectIo direct = choice(key, value, DirectIo.values());
          p = p.withDirect(direct);
          c = c.withDirect(direct == DirectIo.TRUE);
        }
        case "ring" -> p = p.withMemory(p.chunk(), size(key, value));
        case "depth" -> p = p.withDepth(number(key, value));
        case "engine" -> p = p.withEngine(choice(key, value, Engine.values()));
        case "streams" -> p = p.withStreams(number(key, value));
        case "numa" -> numa = NumaOption.parse(value);
        default ->
            throw new InvalidRequestException(
                "files have no option '"
                    + key
                    + "'; the options are path, threads, chunk, direct, engine, depth, ring,"
                    + " streams and numa");
      }
    }
    return new FileOptions(p, c, numa);
  }

  private static int number(String key, String value) {
    try {
      return Integer.parseInt(value);
    } catch (NumberFormatException e) {
      throw new InvalidRequestException(key + "=" + value + " is not a number");
    }
  }

  private static long size(String key, String value) {
    try {
      return ByteSize.parse(value);
    } catch (InvalidRequestException e) {
      throw new InvalidRequestException(key + "=" + value + ": " + e.getMessage());
    }
  }

  private static <E extends Enum<E>> E choice(String key, String value, E[] all) {
    StringBuilder names = new StringBuilder();
    for (E one : all) {
      String name = one.name().toLowerCase(Locale.ROOT);
      if (name.equals(value)) {
        return one;
      }
      names.append(names.isEmpty() ? "" : ", ").append(name);
    }
    throw new InvalidRequestException(key + "=" + value + ": must be one of " + names);
  }
}
