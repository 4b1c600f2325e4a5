package io.gpunvme.sim;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * The text form of fault rules: one a line (or separated by {@code ;}), {@code #} starts a comment.
 *
 * <pre>
 *   ACTION[=VALUE] [dnr] [more] [skip|execute] [on WHAT[|WHAT…]] [KEY=VALUE …]
 *
 *   status=media/unrecovered-read dnr on read lba=100..200 nsid=1 qid=2 count=5
 *   drop on write p=0.001
 *   gone after=1000
 *   ready-stuck on enable
 * </pre>
 *
 * <p>Every action, WHAT and key is described in {@code docs/faults.md}.
 */
public final class FaultSyntax {
  /** The {@code SCT/} prefixes of a status name. */
  static final List<String> TYPES = List.of("generic", "command", "media", "path");

  private static final Map<String, FaultRule.Trigger> TRIGGERS =
      Map.of(
          "enable", FaultRule.Trigger.ENABLE,
          "disable", FaultRule.Trigger.DISABLE,
          "shutdown", FaultRule.Trigger.SHUTDOWN,
          "register", FaultRule.Trigger.REGISTER);

  private FaultSyntax() {}

  /**
   * Reads rules.
   *
   * @throws InvalidRequestException naming the line and the word that is wrong
   */
  public static List<FaultRule> parse(String text) {
    List<FaultRule> rules = new ArrayList<>();
    int line = 0;
    for (String row : text.split("\n", -1)) {
      line++;
      int comment = row.indexOf('#');
      for (String part : (comment < 0 ? row : row.substring(0, comment)).split(";")) {
        if (!part.isBlank()) {
          rules.add(parseRule(part.strip(), line));
        }
      }
    }
    return rules;
  }

  private static FaultRule parseRule(String text, int line) {
    try {
      String[] words = text.split("\\s+");
      FaultRule.Builder b = action(words[0]);
      for (int i = 1; i < words.length; i++) {
        if (words[i].equals("on")) {
          if (++i == words.length) {
            throw new InvalidRequestException("'on' must be followed by what");
          }
          for (String what : words[i].split("\\|")) {
            on(b, what);
          }
        } else {
          word(b, words[i]);
        }
      }
      return b.build();
    } catch (InvalidRequestException e) {
      throw new InvalidRequestException(
          "fault line " + line + " '" + text + "': " + e.getMessage() + " (see docs/faults.md)");
    }
  }

  private static FaultRule.Builder action(String word) {
    int equals = word.indexOf('=');
    String name = equals < 0 ? word : word.substring(0, equals);
    FaultRule.Action action = byName(name);
    FaultRule.Builder b = FaultRule.of(action);
    if (equals < 0) {
      if (needsValue(action)) {
        throw new InvalidRequestException(name + " needs a value: " + name + "=…");
      }
      return b;
    }
    String value = word.substring(equals + 1);
    return switch (action) {
      case STATUS -> b.status(status(value));
      case DELAY, LATE, EARLY, TORN, STALL -> b.nanos(TextValues.duration(name, value));
      case WRONG_CID, REORDER, CORRUPT, SQHD_BAD ->
          b.amount(TextValues.number(name, value, 0xFFFF));
      default -> throw new InvalidRequestException(name + " takes no value");
    };
  }

  private static boolean needsValue(FaultRule.Action action) {
    return action == FaultRule.Action.STATUS
        || action == FaultRule.Action.DELAY
        || action == FaultRule.Action.LATE
        || action == FaultRule.Action.EARLY;
  }

  private static FaultRule.Action byName(String name) {
    for (FaultRule.Action action : FaultRule.Action.values()) {
      if (kebab(action).equals(name)) {
        return action;
      }
    }
    throw new InvalidRequestException("unknown action '" + name + "'");
  }

  /** A status by name ({@code compare-failure}, {@code media/write-fault}) or as hex SCT/SC. */
  static int status(String text) {
    String name = text.substring(text.indexOf('/') + 1);
    for (StatusCode code : StatusCode.values()) {
      boolean named = kebab(code).equals(name) || kebab(code).equals(name + "-error");
      boolean typed = text.equals(name) || text.equals(TYPES.get(code.sct()) + "/" + name);
      if (code != StatusCode.SUCCESS && named && typed) {
        return code.status();
      }
    }
    String[] numbers = text.split("/", -1);
    if (numbers.length == 2
        && numbers[0].matches("[0-7]")
        && numbers[1].matches("\\p{XDigit}{1,2}")) {
      return Status.of(Integer.parseInt(numbers[0]), Integer.parseInt(numbers[1], 16));
    }
    throw new InvalidRequestException("unknown status '" + text + "'");
  }

  private static void on(FaultRule.Builder b, String what) {
    FaultRule.Trigger trigger = TRIGGERS.get(what);
    if (trigger != null) {
      b.on(trigger);
    } else if (what.equals("admin")) {
      b.onAdmin();
    } else if (what.equals("io")) {
      b.onIo();
    } else if (what.startsWith("admin:")) {
      b.onAdmin(TextValues.number("on", what.substring(6), 255));
    } else if (what.startsWith("io:")) {
      b.onIo(TextValues.number("on", what.substring(3), 255));
    } else if (FaultOpcodes.ADMIN.containsKey(what)) {
      b.onAdmin(FaultOpcodes.ADMIN.get(what));
    } else if (FaultOpcodes.IO.containsKey(what)) {
      b.onIo(FaultOpcodes.IO.get(what));
    } else {
      throw new InvalidRequestException("unknown command or event '" + what + "'");
    }
  }

  private static void word(FaultRule.Builder b, String word) {
    int equals = word.indexOf('=');
    if (equals < 0) {
      switch (word) {
        case "dnr" -> b.statusFlag(Status.DNR);
        case "more" -> b.statusFlag(Status.MORE);
        case "skip" -> b.executes(false);
        case "execute" -> b.executes(true);
        default -> throw new InvalidRequestException("unknown word '" + word + "'");
      }
      return;
    }
    String key = word.substring(0, equals);
    String value = word.substring(equals + 1);
    switch (key) {
      case "lba" -> lba(b, value);
      case "nsid" -> b.nsid((int) TextValues.number(key, value));
      case "qid" -> b.queue(TextValues.number(key, value, 0xFFFF));
      case "nth" -> b.nth(TextValues.number(key, value));
      case "after" -> b.after(TextValues.number(key, value));
      case "every" -> b.every(TextValues.number(key, value));
      case "count" -> b.count(TextValues.number(key, value));
      case "p" -> b.probability(probability(value));
      default -> dword(b, key, value);
    }
  }

  private static double probability(String value) {
    if (!value.matches("\\d{1,9}(\\.\\d{1,18})?")) {
      throw TextValues.bad("p", value, "a number from 0 to 1");
    }
    return Double.parseDouble(value);
  }

  private static void lba(FaultRule.Builder b, String value) {
    int dots = value.indexOf("..");
    long first = TextValues.number("lba", dots < 0 ? value : value.substring(0, dots));
    b.lba(first, dots < 0 ? first : TextValues.number("lba", value.substring(dots + 2)));
  }

  private static void dword(FaultRule.Builder b, String key, String value) {
    if (!key.matches("dw([0-9]|1[0-5])")) {
      throw new InvalidRequestException("unknown key '" + key + "'");
    }
    int slash = value.indexOf('/');
    long bits = slash < 0 ? 0xFFFF_FFFFL : TextValues.number(key, value.substring(slash + 1));
    long pattern = TextValues.number(key, slash < 0 ? value : value.substring(0, slash));
    if ((bits | pattern) >>> 32 != 0) {
      throw TextValues.bad(key, value, "a 32-bit number or number/mask");
    }
    b.dword(Integer.parseInt(key.substring(2)), (int) pattern, (int) bits);
  }

  private static String kebab(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** The rule as text that {@link #parse} reads back. */
  static String print(FaultRule rule) {
    StringBuilder text = new StringBuilder(kebab(rule.action()));
    switch (rule.action()) {
      case STATUS -> {
        int code = rule.status();
        text.append("=%x/%02x".formatted(Status.sct(code), Status.sc(code)));
        text.append(Status.dnr(code) ? " dnr" : "").append(Status.more(code) ? " more" : "");
      }
      case DELAY, LATE, EARLY, TORN, STALL -> text.append('=').append(rule.nanos()).append("ns");
      case WRONG_CID, REORDER, CORRUPT, SQHD_BAD -> text.append('=').append(rule.amount());
      default -> {}
    }
    text.append(rule.executes() ? " execute" : " skip");
    printMatch(text, rule);
    printFrequency(text, rule);
    return text.toString();
  }

  private static void printMatch(StringBuilder text, FaultRule rule) {
    FaultMatch match = rule.match();
    if (rule.trigger() != FaultRule.Trigger.COMMAND) {
      text.append(" on ").append(kebab(rule.trigger()));
      return;
    }
    List<String> on = new ArrayList<>();
    opcodes(on, "admin", match.admin());
    opcodes(on, "io", match.io());
    if (on.size() != 2 || !on.contains("admin") || !on.contains("io")) {
      text.append(" on ").append(String.join("|", on));
    }
    if (match.queue() != FaultMatch.ANY_QUEUE) {
      text.append(" qid=").append(match.queue());
    }
    if (match.nsid() != FaultMatch.ANY_NAMESPACE) {
      text.append(" nsid=").append(Integer.toUnsignedString(match.nsid()));
    }
    if (!match.anyLba()) {
      text.append(" lba=").append(Long.toUnsignedString(match.firstLba()));
      text.append("..").append(Long.toUnsignedString(match.lastLba()));
    }
    for (int i = 0; i < FaultRule.Builder.DWORDS; i++) {
      if (match.mask(i) != 0) {
        text.append(" dw%d=0x%x/0x%x".formatted(i, match.pattern(i), match.mask(i)));
      }
    }
  }

  private static void opcodes(List<String> on, String kind, BitSet opcodes) {
    if (opcodes.cardinality() == FaultRule.Builder.OPCODES) {
      on.add(kind);
    } else {
      opcodes.stream().forEach(opcode -> on.add(kind + ":" + opcode));
    }
  }

  private static void printFrequency(StringBuilder text, FaultRule rule) {
    if (rule.after() != 0) {
      text.append(" after=").append(rule.after());
    }
    if (rule.every() != 1) {
      text.append(" every=").append(rule.every());
    }
    if (rule.count() != Long.MAX_VALUE) {
      text.append(" count=").append(rule.count());
    }
    if (rule.probability() != 1) {
      BigDecimal p = BigDecimal.valueOf(rule.probability()).stripTrailingZeros();
      text.append(" p=").append(p.toPlainString());
    }
  }
}
