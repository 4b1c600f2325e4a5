package io.gpunvme.storage.injection;

import java.lang.reflect.Constructor;
import java.time.Duration;
import java.util.function.Function;

/** Our classes as {@link InjectingLoader} defines them, in which a place may be made to fail. */
public final class InjectedClasses {
  private static final long LOOK_MILLIS = 1;

  private final InjectingLoader loader = new InjectingLoader();
  private final Constructor<?> mappingFailure;

  /** New ones: their static fields are their own. */
  public InjectedClasses() throws ReflectiveOperationException {
    mappingFailure =
        loader
            .loadClass("io.gpunvme.nvme.DmaMappingException")
            .getDeclaredConstructor(String.class);
    mappingFailure.setAccessible(true);
  }

  /** The class of this name among them. */
  public Class<?> load(String name) throws ClassNotFoundException {
    return loader.loadClass(name);
  }

  /** What says among them that memory cannot be mapped. */
  Function<String, Throwable> mappingFailure() {
    return message -> {
      try {
        return (Throwable) mappingFailure.newInstance(message);
      } catch (ReflectiveOperationException e) {
        return new AssertionError(e);
      }
    };
  }

  /**
   * Has the n-th place from now on fail, whoever reaches it.
   *
   * @param patience how long to wait for that
   * @return where it was; empty if no such place was reached in time
   */
  public String failOne(int n, Duration patience) throws InterruptedException {
    Injector.begin(n, Injector.Variety.USUAL, mappingFailure());
    long end = System.nanoTime() + patience.toNanos();
    try {
      while (!Injector.fired() && System.nanoTime() < end) {
        Thread.sleep(LOOK_MILLIS);
      }
      return Injector.fired() ? Injector.place() : "";
    } finally {
      Injector.end();
    }
  }
}
