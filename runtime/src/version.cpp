int x_ddl;
