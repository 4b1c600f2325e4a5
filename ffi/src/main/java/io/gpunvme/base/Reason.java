package io.gpunvme.base;

import java.io.EOFException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Why something failed, in words of files and of JSON instead of Java's classes. */
public final class Reason {
  private static final String ADVICE_FOR_PROGRAMMERS =
      "Use JsonReader\\.\\S+ to accept malformed JSON";

  private static final Pattern EXPECTED = Pattern.compile("\\b([Ee]xpected|but was) ([A-Z_]+)\\b");

  private static final Map<String, String> TOKENS =
      Map.ofEntries(
          Map.entry("BEGIN_ARRAY", "an array"),
          Map.entry("BEGIN_OBJECT", "an object"),
          Map.entry("END_ARRAY", "the array's end"),
          Map.entry("END_OBJECT", "the object's end"),
          Map.entry("END_DOCUMENT", "the end"),
          Map.entry("NAME", "a name"),
          Map.entry("STRING", "text"),
          Map.entry("NUMBER", "a number"),
          Map.entry("BOOLEAN", "true or false"),
          Map.entry("NULL", "null"));

  private Reason() {}

  /** Why a file could not be used; the file's name is not part of it. */
  public static String of(IOException e) {
    String message = e.getMessage();
    return switch (e) {
      case NoSuchFileException _ -> "no such file or folder";
      case AccessDeniedException _ -> "permission denied";
      case FileSystemException other when other.getReason() != null -> other.getReason();
      case FileSystemException _ -> "the system refuses it";
      case EOFException _ -> "it ends too early";
      default -> message == null || message.isEmpty() ? "input or output failed" : message;
    };
  }

  /**
   * What a reader of JSON says, for whoever wrote the JSON.
   *
   * @param message of the reader's exception
   */
  public static String ofJson(@Nullable String message) {
    String text = String.valueOf(message).lines().findFirst().orElse("");
    text = text.replaceFirst(ADVICE_FOR_PROGRAMMERS, "malformed JSON");
    Matcher expected = EXPECTED.matcher(text);
    return Printable.of(
        expected.replaceAll(m -> m.group(1) + " " + TOKENS.getOrDefault(m.group(2), m.group(2))));
  }
}
