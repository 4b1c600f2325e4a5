/**
 * Several sources that are read as one: in stripes, or each a copy of the others. Every member has
 * a path of its own, all of which work at the same time; a slow or failed one is named.
 */
@org.jspecify.annotations.NullMarked
package io.gpunvme.storage.path.set;
