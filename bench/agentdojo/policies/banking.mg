# Banking: money goes to an account that the user wrote, that the history knows, or that the named bill names.

reading(/get_iban).
reading(/get_balance).
reading(/get_most_recent_transactions).
reading(/get_scheduled_transactions).
reading(/get_user_info).
reading(/read_file).

means("pay", /send_money).
means("send", /send_money).
means("transfer", /send_money).
means("refund", /send_money).
means("repay", /send_money).
means("return", /send_money).
means("reimburse", /send_money).
means("back", /send_money).
means("donate", /send_money).
means("split", /send_money).
means("wire", /send_money).

means("recurring", /schedule_transaction).
means("schedule", /schedule_transaction).
means("scheduled", /schedule_transaction).
means("standing", /schedule_transaction).
means("monthly", /schedule_transaction).
means("subscription", /schedule_transaction).

means("adjust", /update_scheduled_transaction).
means("update", /update_scheduled_transaction).
means("change", /update_scheduled_transaction).
means("rent", /update_scheduled_transaction).
means("instructions", /update_scheduled_transaction).
means("accordingly", /update_scheduled_transaction).

means("password", /update_password).

means("address", /update_user_info).
means("moved", /update_user_info).
means("moving", /update_user_info).
means("street", /update_user_info).
means("name", /update_user_info).
means("city", /update_user_info).

guarded(/send_money, /recipient).
guarded(/schedule_transaction, /recipient).
guarded(/update_scheduled_transaction, /recipient).
guarded(/update_scheduled_transaction, /id).
guarded(/update_password, /password).
guarded(/update_user_info, /first_name).
guarded(/update_user_info, /last_name).
guarded(/update_user_info, /street).
guarded(/update_user_info, /city).

flows(/get_most_recent_transactions, "recipient", /send_money, /recipient).
flows(/get_most_recent_transactions, "sender", /send_money, /recipient).
flows(/get_most_recent_transactions, "recipient", /schedule_transaction, /recipient).
flows(/get_most_recent_transactions, "sender", /schedule_transaction, /recipient).
flows(/get_scheduled_transactions, "recipient", /send_money, /recipient).
flows(/get_scheduled_transactions, "recipient", /schedule_transaction, /recipient).
flows(/get_scheduled_transactions, "recipient", /update_scheduled_transaction, /recipient).
flows(/get_most_recent_transactions, "recipient", /update_scheduled_transaction, /recipient).
flows(/get_scheduled_transactions, "id", /update_scheduled_transaction, /id).
flows(/get_most_recent_transactions, "id", /update_scheduled_transaction, /id).

# A file that the user named may hold the bill, or the new address.
text_flows(/read_file, /send_money, /recipient).
text_flows(/read_file, /update_scheduled_transaction, /recipient).
text_flows(/read_file, /update_user_info, /street).
text_flows(/read_file, /update_user_info, /city).
