package io.gpunvme.tools.report;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Finds and reads the result files of a folder. Links are not followed below it. */
final class ResultFiles {
  private static final int LARGEST_FILE = 8 << 20;
  private static final int MOST_FILES = 500;
  private static final int DEEPEST_FOLDER = 4;

  private ResultFiles() {}

  /**
   * Every {@code *.json} of the folder and of those in it, sorted by name.
   *
   * @throws ResultFileException if one is not a result file, or there are none or too many
   */
  static List<ResultFile> read(Path folder) throws IOException {
    if (!Files.exists(folder)) {
      throw new NoSuchFileException(folder.toString());
    }
    if (!Files.isDirectory(folder)) {
      throw new FileSystemException(folder.toString(), null, "not a folder");
    }
    // A link as the folder itself is fine.
    Path root = folder.toRealPath();
    List<Path> paths;
    try (Stream<Path> walk = Files.walk(root, DEEPEST_FOLDER)) {
      paths =
          walk.filter(p -> p.toString().endsWith(".json"))
              .filter(p -> Files.isRegularFile(p, LinkOption.NOFOLLOW_LINKS))
              .sorted()
              .limit(MOST_FILES + 1L)
              .toList();
    }
    if (paths.isEmpty()) {
      throw new ResultFileException(folder, "no result files (*.json) in it");
    }
    if (paths.size() > MOST_FILES) {
      throw new ResultFileException(folder, "more than " + MOST_FILES + " result files in it");
    }
    List<ResultFile> files = new ArrayList<>();
    for (Path path : paths) {
      Path shown = folder.resolve(root.relativize(path));
      files.add(new ResultParser(shown).parse(text(path, shown)));
    }
    return files;
  }

  private static String text(Path path, Path shown) throws IOException {
    byte[] bytes;
    try (InputStream in = Files.newInputStream(path, LinkOption.NOFOLLOW_LINKS)) {
      bytes = in.readNBytes(LARGEST_FILE + 1);
    }
    if (bytes.length > LARGEST_FILE) {
      throw new ResultFileException(shown, "larger than " + (LARGEST_FILE >> 20) + " MiB");
    }
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException e) {
      throw new ResultFileException(shown, "not UTF-8 text");
    }
  }
}
