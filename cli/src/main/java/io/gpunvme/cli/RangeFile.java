package io.gpunvme.cli;

import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.MalformedJsonException;
import io.gpunvme.base.ByteSize;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Printable;
import io.gpunvme.base.Reason;
import io.gpunvme.storage.plan.Ranges;
import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Ranges in a file: offset, length, and optionally target offset and target, as CSV or JSON. */
final class RangeFile {
  private static final int FEWEST = 2;
  private static final int MOST = 4;

  private RangeFile() {}

  /** Adds the file's ranges. The file is JSON if it begins with a bracket. */
  static void read(Path file, Ranges.Builder ranges) throws IOException {
    if (Files.isDirectory(file)) {
      throw new UsageException(file + " is a folder, not a file of ranges");
    }
    try (BufferedReader reader = Files.newBufferedReader(file)) {
      if (beginsAsJson(reader)) {
        readJson(file, reader, ranges);
      } else {
        readCsv(file, reader, ranges);
      }
    } catch (CharacterCodingException e) {
      throw new UsageException(file + " is not text in UTF-8");
    }
  }

  private static boolean beginsAsJson(BufferedReader reader) throws IOException {
    int next;
    do {
      reader.mark(1);
      next = reader.read();
    } while (Character.isWhitespace(next));
    if (next >= 0) {
      reader.reset();
    }
    return next == '[' || next == '{';
  }

  private static void readCsv(Path file, BufferedReader reader, Ranges.Builder ranges)
      throws IOException {
    int number = 0;
    for (String line = reader.readLine(); line != null; line = reader.readLine()) {
      number++;
      String text = line.strip();
      if (!text.isEmpty() && !text.startsWith("#")) {
        add(
            ranges,
            text.split(",", -1),
            "%s, line %d, '%s'".formatted(file, number, Printable.quote(text)));
      }
    }
  }

  private static void readJson(Path file, BufferedReader reader, Ranges.Builder ranges)
      throws IOException {
    JsonReader json = new JsonReader(reader);
    json.setStrictness(Strictness.STRICT);
    try {
      json.beginArray();
      while (json.hasNext()) {
        readRange(file, json, ranges);
      }
      json.endArray();
      if (json.peek() != JsonToken.END_DOCUMENT) {
        throw new UsageException(file + ": more than one array");
      }
    } catch (MalformedJsonException | EOFException | IllegalStateException e) {
      throw new UsageException(
          file + ": not a JSON array of ranges: " + Reason.ofJson(e.getMessage()));
    }
  }

  private static void readRange(Path file, JsonReader json, Ranges.Builder ranges)
      throws IOException {
    String where = file + ", at " + json.getPath();
    List<String> fields = new ArrayList<>(MOST);
    json.beginArray();
    while (json.hasNext()) {
      if (json.peek() != JsonToken.NUMBER || fields.size() == MOST) {
        throw wrong(where);
      }
      fields.add(json.nextString());
    }
    json.endArray();
    add(ranges, fields.toArray(new String[0]), where);
  }

  /** Adds one range; {@code where} is its place, for messages. */
  static void add(Ranges.Builder ranges, String[] fields, String where) {
    if (fields.length < FEWEST || fields.length > MOST) {
      throw wrong(where);
    }
    long[] numbers = new long[fields.length];
    try {
      for (int i = 0; i < numbers.length; i++) {
        numbers[i] = ByteSize.parse(fields[i].strip());
      }
    } catch (InvalidRequestException e) {
      throw new UsageException(where + ": " + e.getMessage());
    }
    if (fields.length == FEWEST) {
      ranges.add(numbers[0], numbers[1]);
    } else {
      long target = fields.length == MOST ? numbers[MOST - 1] : 0;
      if (target > Integer.MAX_VALUE) {
        throw new UsageException(where + ": there is no target " + target);
      }
      ranges.add(numbers[0], numbers[1], (int) target, numbers[2]);
    }
  }

  private static UsageException wrong(String where) {
    return new UsageException(
        where + " is not offset, length, and optionally target offset and target");
  }
}
