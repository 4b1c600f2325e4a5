package io.gpunvme.storage.injection;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Counts the places at which the host may fail, in the order in which they are reached, and makes
 * the n-th of them fail. {@link InjectingLoader} has product code call this. One for the process:
 * one scenario runs at a time.
 */
public final class Injector {
  private static final int ENOMEM = 12;
  private static final int EIO = 5;

  /** CUDA_ERROR_OUT_OF_MEMORY. */
  private static final int CUDA_ENOMEM = 2;

  private static final StackWalker STACK = StackWalker.getInstance();
  private static final AtomicInteger REACHED = new AtomicInteger();
  private static volatile boolean counting;
  private static volatile int failing;
  private static volatile Variety variety = Variety.USUAL;
  private static volatile @Nullable Throwable fault;
  private static volatile String place = "";
  private static volatile Function<String, Throwable> mappingFailure = OutOfMemoryError::new;

  /** Functions of the CUDA driver that give back what they were given whatever they say. */
  private static final Pattern GIVES_BACK =
      Pattern.compile("Free|Destroy|Unregister|Release|Unload");

  /** Where native functions are called that do so. */
  private static final Pattern GIVES_BACK_NATIVE =
      Pattern.compile("Posix\\.(close|munmap):|UnixSocket\\.shutdown:");

  /** Set from the beginning of a native call that fails although it did its work, to its end. */
  private static final ThreadLocal<Boolean> FAILS_AFTER = ThreadLocal.withInitial(() -> false);

  /** Set while a scenario looks at what has happened. */
  private static final ThreadLocal<Boolean> LOOKING = ThreadLocal.withInitial(() -> false);

  private Injector() {}

  /** What fails. */
  public enum Kind {
    THREAD,
    ALLOCATION,
    COPY,
    MAP,
    UNMAP,
    NATIVE
  }

  /** How it fails. */
  enum Variety {
    /** As the host does at this place. */
    USUAL,
    /** The stack has no room for what the place calls. */
    STACK_OVERFLOW,
    /** A class that the place needs cannot be had. */
    LINKAGE
  }

  /** From here on the n-th place fails; none if n is 0. */
  static void begin(int n, Variety how, Function<String, Throwable> newMappingFailure) {
    REACHED.set(0);
    fault = null;
    place = "";
    failing = n;
    variety = how;
    mappingFailure = newMappingFailure;
    counting = true;
  }

  /** Nothing counts or fails any more. Returns how many places were reached. */
  static int end() {
    counting = false;
    return REACHED.get();
  }

  /** Whether a place has failed. */
  public static boolean fired() {
    return fault != null;
  }

  /** What was thrown, or stands for the error number that was returned. */
  static @Nullable Throwable fault() {
    return fault;
  }

  /** Where it was, for messages. */
  static String place() {
    return place;
  }

  /** Does what is no part of a scenario: nothing that this thread reaches counts or fails. */
  public static void look(Runnable action) {
    LOOKING.set(true);
    try {
      action.run();
    } finally {
      LOOKING.set(false);
    }
  }

  private static boolean isDue() {
    // Only one fails: those behind it need not be counted.
    return counting
        && fault == null
        && !LOOKING.get()
        && !isInDevice()
        && REACHED.incrementAndGet() == failing;
  }

  /** The embedded SSD is the device, not the host. */
  private static boolean isInDevice() {
    return STACK.walk(
        frames -> frames.anyMatch(f -> f.getClassName().startsWith("io.gpunvme.sim.")));
  }

  private static List<String> stack() {
    return STACK.walk(
        frames ->
            frames
                .filter(f -> !f.getClassName().equals(Injector.class.getName()))
                .map(f -> f.getClassName() + "." + f.getMethodName() + ":" + f.getLineNumber())
                .toList());
  }

  private static String here(String kind) {
    return kind
        + stack().stream()
            .filter(frame -> frame.startsWith("io.gpunvme."))
            .limit(12)
            .reduce("", (all, frame) -> all + "\n    at " + frame);
  }

  private static <T extends Throwable> T firedAt(String where, T thrown) {
    place = where;
    fault = thrown;
    return thrown;
  }

  /** Called by product code before what may fail, and behind what fails although it was done. */
  public static void at(Kind kind) {
    if (isDue()) {
      throw Injector.<RuntimeException>unchecked(firedAt(here(kind.name()), failure(kind)));
    }
  }

  private static Throwable failure(Kind kind) {
    return switch (variety) {
      case USUAL -> usual(kind);
      case STACK_OVERFLOW -> new StackOverflowError("(injected)");
      case LINKAGE -> new NoClassDefFoundError("Could not initialize class (injected)");
    };
  }

  private static Throwable usual(Kind kind) {
    return switch (kind) {
      case THREAD -> new OutOfMemoryError("unable to create native thread (injected)");
      case ALLOCATION -> new OutOfMemoryError("Cannot reserve native memory (injected)");
      case COPY ->
          new InternalError("a fault occurred in an unsafe memory access operation (injected)");
      case MAP -> mappingFailure.apply("no bus address is left (injected)");
      case UNMAP -> new IllegalStateException("the range could not be unmapped (injected)");
      case NATIVE -> new IllegalStateException("an error code (injected)");
    };
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> RuntimeException unchecked(Throwable e) throws T {
    throw (T) e;
  }

  /** At the beginning of a native call: its error number, or 0. */
  public static int errno() {
    // They give back what they were given whatever they say.
    return failed("NATIVE", GIVES_BACK_NATIVE.asPredicate()) ? ENOMEM : 0;
  }

  /** At the end of a native call: what it returns instead of this. */
  public static long result(long own) {
    return failsAfter() ? -EIO : own;
  }

  /** At the beginning of a call of the CUDA driver: its status code, or 0. */
  public static int cuda(String function) {
    return failed(function, _ -> GIVES_BACK.matcher(function).find()) ? CUDA_ENOMEM : 0;
  }

  /** At the end of such a call: what it returns instead of this. */
  public static int status(int own) {
    return failsAfter() ? CUDA_ENOMEM : own;
  }

  /** Whether a call of something foreign fails now: one that gives back does at its end. */
  private static boolean failed(String function, Predicate<String> givesBack) {
    if (!isDue()) {
      return false;
    }
    // Not the field: from here on others may let the next place fail.
    String where = here(function);
    firedAt(where, failure(Kind.NATIVE));
    if (givesBack.test(where)) {
      FAILS_AFTER.set(true);
      return false;
    }
    throwUnlessUsual();
    return true;
  }

  private static boolean failsAfter() {
    boolean fails = FAILS_AFTER.get();
    FAILS_AFTER.set(false);
    if (fails) {
      throwUnlessUsual();
    }
    return fails;
  }

  /** A code is returned only as the host does. */
  private static void throwUnlessUsual() {
    Throwable thrown = fault;
    if (variety != Variety.USUAL && thrown != null) {
      throw Injector.<RuntimeException>unchecked(thrown);
    }
  }
}
