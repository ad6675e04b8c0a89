/* version.h: what this build is. */
#ifndef ST_CLI_VERSION_H
#define ST_CLI_VERSION_H

#include "base/device/device.h"
#include "base/json.h"
#include "base/option.h"

const char *version_number(void); /* "0.1.0" */
const char *version_commit(void);
void version_print(void);      /* `sparsetrain version` */
void version_print_json(void); /* the same for programs, as one line */
extern const struct option_table version_options;
void version_json(struct json *j, const struct device_ops *device); /* "versions": {...}; backend: of this device */

#endif
