package io.gpunvme.tools.machine;

import java.io.IOException;

/** The kernel did not hand a function from one driver to another. */
public final class DriverBindingException extends IOException {
  private static final long serialVersionUID = 1;

  /** The message says what was tried, what happened, and what to do. */
  public DriverBindingException(String message) {
    super(message);
  }

  /** As above, with the error that ended it. */
  public DriverBindingException(String message, Throwable cause) {
    super(message, cause);
  }
}
