from ddl._horovod import ProcessSet, add_process_set, global_process_set, remove_process_set
